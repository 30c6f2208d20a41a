"""Objectives of the user's own: a Python function, a program, and the TOML file that declares their variables."""
