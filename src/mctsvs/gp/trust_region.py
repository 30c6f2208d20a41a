"""A trust region: a box around the best point that grows with success and shrinks with failure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mctsvs.utils.validation import Array

FIRST_LENGTH, SHORTEST, LONGEST = 0.8, 2.0**-7, 1.6  # TuRBO's (Eriksson et al., NeurIPS 2019)
SUCCESSES = 3  # in a row, to double
WIDEST = 3.0  # of a side's logarithm beside the mean of all


@dataclass
class TrustRegion:
    """Its length and its run of successes and failures; the caller says what to do when it is too short."""

    length: float = FIRST_LENGTH
    successes: int = 0
    failures: int = 0

    def resize(self, *, success: bool, patience: int, needed: int = SUCCESSES, evaluations: int = 1) -> None:
        """After so many evaluations: double after `needed` successes, halve after `patience` failures in a row."""
        self.successes, self.failures = (self.successes + 1, 0) if success else (0, self.failures + evaluations)
        if self.successes >= needed:
            self.length, self.successes = min(2.0 * self.length, LONGEST), 0
        elif self.failures >= patience:
            self.length, self.failures = self.length / 2.0, 0

    def box(
        self, centre: Array, log_lengthscales: Array | None = None, free: npt.NDArray[np.bool_] | None = None
    ) -> tuple[Array, Array]:
        """Low and high corner: a cube of this length, or the lengthscales' proportions in the same volume.

        The coordinates that are `free` are so everywhere, whatever the length.
        """
        sides = np.full(len(centre), self.length)
        if log_lengthscales is not None:
            sides *= np.exp(np.clip(log_lengthscales - log_lengthscales.mean(), -WIDEST, WIDEST))
        if free is not None:
            sides[free] = 2.0
        return np.clip(centre - sides / 2.0, 0.0, 1.0), np.clip(centre + sides / 2.0, 0.0, 1.0)
