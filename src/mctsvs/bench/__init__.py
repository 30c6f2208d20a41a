"""Experiments: runs of methods on problems, and what is measured of them."""
