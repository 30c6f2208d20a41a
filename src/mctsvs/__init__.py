"""mctsvs: optimisation of expensive functions of many variables, few of which matter.

>>> import mctsvs
>>> result = mctsvs.minimize(f, [(-5, 10)] * 300, budget=600, seed=0)
>>> result.x, result.fun, result.importance
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mctsvs.common import InputError
    from mctsvs.in_one_call import maximize, minimize
    from mctsvs.optimizer import Optimizer
    from mctsvs.result import Result
    from mctsvs.space import Boolean, Categorical, Fixed, Float, Integer, Ordinal, Space
    from mctsvs.study import Study, StudyError
    from mctsvs.trial import Recommendation, Trial

__version__ = "0.3.0"

__all__ = [
    "Boolean",
    "Categorical",
    "Fixed",
    "Float",
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
    "mctsvs.common": ("InputError",),
    "mctsvs.optimizer": ("Optimizer",),
    "mctsvs.in_one_call": ("maximize", "minimize"),
    "mctsvs.result": ("Result",),
    "mctsvs.space": ("Boolean", "Categorical", "Fixed", "Float", "Integer", "Ordinal", "Space"),
    "mctsvs.study": ("Study", "StudyError"),
    "mctsvs.trial": ("Recommendation", "Trial"),
}


def __getattr__(name: str) -> Any:
    """Names are imported when first used, so that the command line answers at once."""
    from importlib import import_module

    if name in ("plot", "report"):
        return import_module(f"mctsvs.{name}")
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(home), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'mctsvs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
