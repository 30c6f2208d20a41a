"""Published files as the tables that problems read: each converter is a function of the originals.

A converter takes `Originals` and returns the arrays of each file of the data set. It runs nothing that a file holds,
and raises `Refused` where a file is not what was published. `get` finds the originals, converts and keeps.
"""
