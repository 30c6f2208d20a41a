"""Ask and tell: `Optimizer` in the user's units, the same over the unit cube behind it, and trials."""

from mctsvs.optimizer.objectives import DIRECTIONS
from mctsvs.optimizer.optimizer import Optimizer, one_space

__all__ = ["DIRECTIONS", "Optimizer", "one_space"]
