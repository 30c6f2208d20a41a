"""Reproduction of the MCTS-VS paper: every table and figure is an entry."""
