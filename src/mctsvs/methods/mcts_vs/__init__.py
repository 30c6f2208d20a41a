"""MCTS-VS, the paper's method: a tree over groups of variables (Algorithm 1 of Song et al., NeurIPS 2022)."""
