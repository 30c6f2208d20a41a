"""The search space: kinds of variables, and the way between natural units and the unit cube."""

from mctsvs.space.region import Region
from mctsvs.space.space import Space
from mctsvs.space.variables import Categorical, Float, Integer, Variable

__all__ = ["Categorical", "Float", "Integer", "Region", "Space", "Variable"]
