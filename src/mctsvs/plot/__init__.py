"""Pictures of a run: of a Result, a Study, an Optimizer, or a list of them.

>>> import mctsvs.plot
>>> mctsvs.plot.convergence(study)
>>> mctsvs.plot.importance(result, ax=ax)

Each picture is a computing function (`mctsvs.plot.curves`, `variables`, `surface`: plain arrays, no plotting library)
and a drawing on matplotlib axes (this module's functions). `mctsvs.report` draws the same numbers on a page.
"""

from __future__ import annotations

from mctsvs.plot.draw import (
    constraints,
    contour,
    convergence,
    importance,
    parallel,
    selection,
    slices,
    timeline,
    tree,
)

__all__ = [
    "constraints",
    "contour",
    "convergence",
    "importance",
    "parallel",
    "selection",
    "slices",
    "timeline",
    "tree",
]
