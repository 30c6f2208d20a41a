"""Statistics of comparisons: means with standard errors, ranks, and the tests of Wilcoxon and of Friedman."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mctsvs.utils.validation import Array

BETTER, WORSE, LEVEL = "+", "-", "≈"
CONFIDENCE = 0.05  # as in the paper
FEWEST_PAIRS = 6  # so that the signed-rank test can fall below that


@dataclass(frozen=True)
class Summary:
    """Of some runs' values, failed ones (NaN) left out."""

    n: int
    mean: float
    sd: float  # of the sample; NaN for fewer than two
    error: float  # standard error of the mean

    @classmethod
    def of(cls, n: int, mean: float, error: float) -> Summary:
        """From a mean and its standard error."""
        return cls(n, mean, error * float(np.sqrt(n)), error)

    def __str__(self) -> str:
        if self.n < 2:
            return number(self.mean)
        large = max(abs(self.mean), self.error) >= 1000
        if not 0 < self.error < (np.inf if large else 0.01):
            return f"{number(self.mean)} ± {number(self.error)}"
        decimals = int(np.clip(1 - np.floor(np.log10(self.error)), 0, 7))  # the error's first two digits, all of large
        return f"{self.mean:,.{decimals}f} ± {self.error:,.{decimals}f}"


def summary(values: npt.ArrayLike) -> Summary:
    """Mean, spread and standard error."""
    given = np.asarray(values, dtype=np.float64)
    given = given[~np.isnan(given)]
    n = len(given)
    if n == 0:
        return Summary(0, np.nan, np.nan, np.nan)
    sd = float(given.std(ddof=1)) if n > 1 else np.nan
    return Summary(n, float(given.mean()), sd, sd / np.sqrt(n))


def number(value: float) -> str:
    """Three decimals, or three digits where that says too little; a dash for what is not known."""
    if np.isnan(value):
        return "–"
    if value == 0 or 0.001 <= abs(value) < 1000:
        return f"{value:.3f}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def signed_rank(one: npt.ArrayLike, other: npt.ArrayLike) -> float:
    """Two-sided p-value of the Wilcoxon signed-rank test of paired values; 1 where nothing differs."""
    from scipy.stats import wilcoxon

    difference = np.asarray(one, dtype=np.float64) - np.asarray(other, dtype=np.float64)
    difference = difference[~np.isnan(difference)]
    if not np.any(difference):
        return 1.0
    return float(wilcoxon(difference).pvalue)


def least_p(pairs: int) -> float:
    """The smallest p-value of the two-sided signed-rank test of so many pairs: all differences have one sign."""
    return min(1.0, 2.0 ** (1 - pairs))


def mark(reference: npt.ArrayLike, other: npt.ArrayLike, *, maximise: bool = True, level: float = CONFIDENCE) -> str:
    """Whether the reference is significantly better than another method, as in the paper's table.

    Args:
        reference: Its values.
        other: The other's values, in the same order of seeds.
        maximise: Whether larger values are better.
        level: The p-value from which on a difference is not significant.

    Returns:
        + where it is better, - where it is worse, by the larger sum of ranks; ≈ where neither.
    """
    from scipy.stats import rankdata

    if signed_rank(reference, other) >= level:
        return LEVEL
    difference = np.asarray(reference, dtype=np.float64) - np.asarray(other, dtype=np.float64)
    difference = difference[~np.isnan(difference)]
    difference = difference[difference != 0]
    ranks = rankdata(np.abs(difference))
    ahead = ranks[difference > 0].sum() > ranks[difference < 0].sum()
    return BETTER if ahead == maximise else WORSE


def holm(values: Sequence[float]) -> list[float]:
    """p-values corrected for their number (Holm, Scandinavian Journal of Statistics, 1979)."""
    order = np.argsort(values, kind="stable")
    raised = np.array(values, dtype=np.float64)[order] * np.arange(len(values), 0, -1)
    corrected = np.empty(len(values))
    corrected[order] = np.minimum(np.maximum.accumulate(raised), 1.0)
    return [float(p) for p in corrected]


def corrected_marks(pairs: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]], *, maximise: bool = True) -> list[str]:
    """As `mark`, of pairs of values (the reference's, another's), with p-values corrected for the number of pairs."""
    corrected = holm([signed_rank(one, other) for one, other in pairs])
    return [
        LEVEL if p >= CONFIDENCE else mark(one, other, maximise=maximise, level=1.1)
        for p, (one, other) in zip(corrected, pairs, strict=True)
    ]


def tally(marks: Sequence[str]) -> str:
    """The last line of the paper's table: how often +, - and ≈."""
    return "/".join(str(list(marks).count(sign)) for sign in (BETTER, WORSE, LEVEL))


def ranks(values: Mapping[str, float], *, maximise: bool = True) -> dict[str, float]:
    """1 for the best; equal values share the mean of their ranks, NaN comes last."""
    from scipy.stats import rankdata

    given = np.array(list(values.values()), dtype=np.float64)
    order = np.where(np.isnan(given), np.inf, -given if maximise else given)
    return dict(zip(values, rankdata(order).tolist(), strict=True))


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Kendall's tau of two orders of the same things; NaN for fewer than three."""
    from scipy.stats import kendalltau

    if len(one) < 3:
        return float("nan")
    return float(kendalltau(one, other).statistic)


def apart(one: Summary, other: Summary) -> float:
    """How far two means lie apart, in standard errors of their difference; positive: `one` is larger."""
    error = float(np.hypot(one.error, other.error))
    return (one.mean - other.mean) / error if error > 0 else float("nan")


def at_seconds(seconds: Array, best: Array, grid: Array) -> Array:
    """Best so far of one run at given times: a step function, NaN before the first evaluation."""
    position = np.searchsorted(seconds, grid, side="right") - 1
    return np.where(position >= 0, best[np.maximum(position, 0)], np.nan)


FEWEST = 3  # methods, and problems, that a diagram is made of


@dataclass(frozen=True)
class Ranking:
    """Mean ranks, best first, of methods that were run on all of the problems."""

    ranks: Mapping[str, float]
    problems: int
    p_value: float  # of Friedman's test that all methods are alike
    difference: float  # mean ranks further apart than this differ significantly

    def groups(self) -> list[tuple[str, ...]]:
        """The longest runs of neighbours that do not differ."""
        names, found = list(self.ranks), list[tuple[str, ...]]()
        for i, first in enumerate(names):
            group = tuple(n for n in names[i:] if self.ranks[n] - self.ranks[first] < self.difference)
            if len(group) > 1 and not (found and set(group) <= set(found[-1])):
                found.append(group)
        return found


def ranking(means: Mapping[str, Mapping[str, float]], maximise: Mapping[str, bool]) -> Ranking | None:
    """Friedman's test, and the critical difference of mean ranks after Nemenyi.

    J. Demsar, "Statistical Comparisons of Classifiers over Multiple Data Sets", JMLR 2006.

    Args:
        means: Problem -> method -> mean value. Methods that lack a problem are left out.
        maximise: Problem -> whether larger values are better.

    Returns:
        The ranking; None where too little was compared.
    """
    from scipy.stats import friedmanchisquare, studentized_range

    everywhere = set.intersection(*(set(row) for row in means.values())) if means else set()
    methods = [m for m in next(iter(means.values()), {}) if m in everywhere]
    k, n = len(methods), len(means)
    if k < FEWEST or n < FEWEST:
        return None
    placed = [ranks({m: row[m] for m in methods}, maximise=maximise[p]) for p, row in means.items()]
    table = np.array([[row[m] for m in methods] for row in placed])
    mean = dict(sorted(zip(methods, table.mean(axis=0).tolist(), strict=True), key=lambda item: item[1]))
    p_value = float(friedmanchisquare(*table.T).pvalue) if np.ptp(table, axis=1).all() else 1.0
    quantile = float(studentized_range.ppf(1.0 - CONFIDENCE, k, np.inf)) / np.sqrt(2.0)
    return Ranking(mean, n, p_value, quantile * float(np.sqrt(k * (k + 1) / (6.0 * n))))
