"""Several points from one model: each is the best of its surface, and enters as a bad one before the next is sought."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from mctsvs.common import Array
from mctsvs.gp.ensemble import Ensemble
from mctsvs.gp.posterior import Posterior

M = TypeVar("M", Posterior, Ensemble)


def propose_greedily(n: int, model: M, lie: float | None, best: Callable[[M, list[Array]], Array]) -> Array:
    """(n, d) points: `best` gives one for the model and the points chosen so far (constant liar).

    `lie` is the value they are given; None for surfaces that differ by themselves, as drawn functions do.
    """
    chosen: list[Array] = []
    for i in range(n):
        if i and lie is not None:
            model = model.with_lies(chosen[-1][None], lie)
        chosen.append(best(model, chosen))
    return np.array(chosen)
