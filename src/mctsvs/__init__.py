"""mctsvs: optimisation of expensive functions of many variables, few of which matter.

>>> import mctsvs
>>> result = mctsvs.minimize(f, [(-5, 10)] * 300, budget=600, seed=0)
>>> result.x, result.fun, result.variables
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mctsvs.optimize import FrontResult, Result, maximize, minimize
    from mctsvs.optimizer import Optimizer
    from mctsvs.optimizer.front import Front
    from mctsvs.optimizer.trial import Recommendation, Trial
    from mctsvs.space import Boolean, Categorical, Fixed, Float, Integer, Ordinal, Space
    from mctsvs.study import Study
    from mctsvs.utils.validation import InputError, StudyError

__version__ = "0.3.0"

__all__ = [
    "Boolean",
    "Categorical",
    "Fixed",
    "Float",
    "Front",
    "FrontResult",
    "InputError",
    "Integer",
    "Optimizer",
    "Ordinal",
    "Recommendation",
    "Result",
    "Space",
    "Study",
    "StudyError",
    "Trial",
    "__version__",
    "maximize",
    "minimize",
]

_HOMES = {
    "mctsvs.utils.validation": ("InputError", "StudyError"),
    "mctsvs.optimizer": ("Optimizer",),
    "mctsvs.optimize": ("FrontResult", "Result", "maximize", "minimize"),
    "mctsvs.optimizer.front": ("Front",),
    "mctsvs.space": ("Boolean", "Categorical", "Fixed", "Float", "Integer", "Ordinal", "Space"),
    "mctsvs.study": ("Study",),
    "mctsvs.optimizer.trial": ("Recommendation", "Trial"),
}


def __getattr__(name: str) -> Any:
    """Names are imported when first used, so that the command line answers at once."""
    from importlib import import_module

    if name == "visualization":
        return import_module("mctsvs.visualization")
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(home), name)
            globals()[name] = value
            return value
    meant = {"Real": "Float", "Double": "Float", "Int": "Integer", "Bool": "Boolean", "Choice": "Categorical"}.get(name)
    hint = f", use {meant}" if meant else ""
    raise AttributeError(f"module 'mctsvs' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted(__all__)
