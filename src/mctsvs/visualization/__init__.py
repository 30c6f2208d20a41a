"""Figures of a run, given as a Result, a Study, an Optimizer, or a list of them.

>>> from mctsvs import visualization
>>> visualization.plot_convergence(study)
>>> visualization.plot_variables(result, ax=ax)

Each figure is a pure function of numbers (`curves`, `variables`, `surrogate_slices`: plain arrays, no plotting library)
and a drawing on matplotlib axes (the functions here). `visualization.report` draws the same numbers with Plotly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mctsvs.visualization.matplotlib import (
        plot_constraints,
        plot_contour,
        plot_convergence,
        plot_parallel,
        plot_selection,
        plot_slices,
        plot_timeline,
        plot_tree,
        plot_variables,
    )

__all__ = [
    "plot_constraints",
    "plot_contour",
    "plot_convergence",
    "plot_parallel",
    "plot_selection",
    "plot_slices",
    "plot_timeline",
    "plot_tree",
    "plot_variables",
]


def __getattr__(name: str) -> Any:
    """The figures are imported when first drawn: a run that shows its progress needs none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mctsvs.visualization import matplotlib

    return getattr(matplotlib, name)
