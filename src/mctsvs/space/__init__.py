"""The search space: kinds of variables, and the way between natural units and the unit cube."""

from mctsvs.space.region import Region
from mctsvs.space.space import Space
from mctsvs.space.variables import Boolean, Categorical, Fixed, Float, Integer, Ordinal, Variable

__all__ = ["Boolean", "Categorical", "Fixed", "Float", "Integer", "Ordinal", "Region", "Space", "Variable"]
