"""What a comparison leaves behind: a summary for people, a table for papers, and figures."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from mctsvs.bench import figures, stats
from mctsvs.bench.algorithms import ConfiguredMethod
from mctsvs.bench.grid import several_versions
from mctsvs.bench.results import short
from mctsvs.bench.run_store import Runs
from mctsvs.bench.stats import Summary, number
from mctsvs.bench.styles import quantity, written
from mctsvs.utils.validation import Array

SEED_COLUMNS = ("problem", "method", "seed", "evaluations", "best", "recall", "processor_seconds")
TABLE_COLUMNS = (
    *("method", "runs", "best ± standard error", "worst", "mark", "p", "Holm"),
    *("rank", "recall", "optimiser seconds"),
)
MOST_POINTS = 60  # of a curve that is drawn and written
Results = Mapping[tuple[str, ConfiguredMethod], Runs]
"""(problem, method) -> its runs."""
LEGEND = f"""Mark: the reference, whose own is empty, is significantly better than the method of that row (+), worse (-)
or neither (≈) by the two-sided Wilcoxon signed-rank test, paired by seed, at {stats.CONFIDENCE}. The column p has its
p-value. Holm is the same mark with p-values corrected for the number of methods on the problem. Rank 1 is the best
mean, of those with the most runs that found a feasible value. Recall is the share of the variables that matter among
those that were moved. A dash stands for what is not known."""


def steps(budget: int) -> Array:
    """Evaluations at which curves are drawn and written: the first, then evenly, the last always."""
    step = max(1, math.ceil(budget / MOST_POINTS / 5) * 5 if budget > MOST_POINTS else 1)
    return np.unique(np.concatenate([[1], np.arange(step, budget + 1, step), [budget]])).astype(np.float64)


def curve(method: ConfiguredMethod, runs: Runs, by_seconds: bool = False) -> figures.Curve:
    """Mean best so far and its standard error against evaluations.

    Or against wall seconds, from the time when all runs have a value until the first of them ends.
    """
    if by_seconds:
        start, end = float(runs.elapsed[:, 0].max()), float(runs.elapsed[:, -1].min())
        x = np.geomspace(max(start, 1e-4), max(end, start * 1.001, 1.1e-4), MOST_POINTS)
        rows = [stats.at_seconds(t, best, x) for t, best in zip(runs.elapsed, runs.best, strict=True)]
        found = [stats.summary(column) for column in np.array(rows).T]
    else:
        x = steps(runs.budget)
        found = [runs.at(int(n)) for n in x]
    return figures.Curve(method.label, x, np.array([s.mean for s in found]), np.array([s.error for s in found]))


def plot(problem: str, own: Mapping[ConfiguredMethod, Runs], by_seconds: bool, named: bool = True) -> figures.Plot:
    """The curves of all methods on a problem; `named`: with a name beside the vertical axis."""
    first = next(iter(own.values()))
    curves = [curve(method, runs, by_seconds) for method, runs in own.items()]
    return plotted(problem, curves, optimum=first.optimum, maximise=first.maximise, by_seconds=by_seconds, named=named)


def plotted(
    problem: str,
    curves: Sequence[figures.Curve],
    *,
    optimum: float | None,
    maximise: bool = True,
    by_seconds: bool = False,
    named: bool = True,
) -> figures.Plot:
    """Where the optimum is known and no curve reaches it, the logarithm of the regret: it shows who ends where."""
    along, of = "wall seconds" if by_seconds else "evaluations", quantity(problem)
    scale: Literal["linear", "log"] = "log" if by_seconds else "linear"
    lost = _regrets(curves, optimum, maximise) if optimum is not None else None
    if lost is not None:
        name = f"regret: optimum - best {of}" if maximise else f"regret: best {of} - optimum"
        return figures.Plot(problem, along, name if named else "", lost, xscale=scale, yscale="log")
    levels = {} if optimum is None else {"optimum": optimum}
    name = f"best {of} so far" if named else ""
    return figures.Plot(problem, along, name, curves, levels=levels, xscale=scale)


def _regrets(curves: Sequence[figures.Curve], optimum: float, maximise: bool) -> list[figures.Curve] | None:
    """The curves' distance from the optimum; None where a mean is as good as that."""
    sign = 1.0 if maximise else -1.0
    lost = [replace(curve, mean=sign * (optimum - curve.mean)) for curve in curves]
    least = min((float(np.nanmin(c.mean)) for c in lost if np.isfinite(c.mean).any()), default=0.0)
    return lost if least > 1e-6 * max(1.0, abs(optimum)) else None


def by_problem(every: Results) -> dict[str, dict[ConfiguredMethod, Runs]]:
    """Problem -> method -> its runs."""
    found: dict[str, dict[ConfiguredMethod, Runs]] = {}
    for (problem, method), runs in every.items():
        found.setdefault(problem, {})[method] = runs
    return found


def latex_table(every: Results, reference: ConfiguredMethod | None = None) -> str:
    """The last values as a table for papers (booktabs): a line for each method, with marks against the reference.

    Args:
        every: The runs.
        reference: The method that the marks speak of; the first on a problem where it was not run.

    Returns:
        A `tabular`: below each problem its direction and number of runs. Comments at the end explain the marks.
    """
    cells: dict[str, dict[str, Summary]] = {}
    marks: dict[tuple[str, str], str] = {}
    below: dict[str, str] = {}
    leading = set()
    for problem, own in by_problem(every).items():
        first, least = referee(own, reference), min(runs.missing for runs in own.values())
        below[problem] = rf"$\{'up' if first.maximise else 'down'}arrow$, {len(first.seeds)} runs"
        for method, runs in own.items():
            name = written(method.label)
            cells.setdefault(name, {})[problem] = runs.at(runs.budget)
            if runs is not first:
                sign = stats.mark(*first.paired(runs), maximise=runs.maximise)
                marks[name, problem] = {stats.LEVEL: r"\approx"}.get(sign, sign)
            if runs.missing == least:
                leading.add((name, problem))
    goals = {problem: runs.maximise for (problem, _), runs in every.items()}
    words = " ".join(LEGEND.partition(" The column")[0].split())
    return tabular(cells, goals, leading, marks, below) + f"% {words}\n% Up arrow: larger is better.\n"


def tabular(
    cells: Mapping[str, Mapping[str, Summary]],
    maximise: Mapping[str, bool],
    leading: Collection[tuple[str, str]] | None = None,
    marks: Mapping[tuple[str, str], str] | None = None,
    below: Mapping[str, str] | None = None,
) -> str:
    """A LaTeX table: methods down, problems across, mean and standard error, the best mean on a problem in bold.

    Args:
        cells: Method -> problem -> value.
        maximise: The problems in order, and whether larger values are better.
        leading: The (method, problem) that may be bold; default: all.
        marks: (method, problem) -> a sign to raise behind the value.
        below: Problem -> what stands below its name.
    """
    lines = [rf"\begin{{tabular}}{{l{'c' * len(maximise)}}}", r"\toprule", _latex_row("Method", map(latex, maximise))]
    lines += [_latex_row("", (below[problem] for problem in maximise))] if below else []
    lines.append(r"\midrule")
    best = {}
    for problem, larger in maximise.items():
        rows = [row for name, row in cells.items() if leading is None or (name, problem) in leading]
        means = [row[problem].mean for row in rows if problem in row and row[problem].n]
        best[problem] = (max if larger else min)(means, default=float("nan"))
    for name, row in cells.items():
        signs = [(marks or {}).get((name, problem), "") for problem in maximise]
        values = (_latex_cell(row.get(p), best[p], sign) for p, sign in zip(maximise, signs, strict=True))
        lines.append(_latex_row(latex(name), values))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _latex_row(first: str, rest: Iterable[str]) -> str:
    return " & ".join([first, *rest]) + r" \\"


def _latex_cell(value: Summary | None, best: float, sign: str) -> str:
    if value is None:
        return "--"
    mean, _, error = str(value).replace(",", "{,}").partition(" ± ")
    mean = rf"\mathbf{{{mean}}}" if value.mean == best else mean
    return f"${mean}" + (rf" \pm {error}" if error else "") + (f"^{{{sign}}}" if sign else "") + "$"


def latex(text: str) -> str:
    """Words with nothing in them that LaTeX would take for a command; formulas stay."""
    parts = text.split("$")
    parts[::2] = [part.replace("_", r"\_").replace("%", r"\%").replace("&", r"\&") for part in parts[::2]]
    return "$".join(parts)


def seeds(every: Results) -> list[tuple[object, ...]]:
    """A row for each run: what it ended with."""
    rows: list[tuple[object, ...]] = [SEED_COLUMNS]
    for (problem, method), runs in every.items():
        for i, seed in enumerate(runs.seeds):
            last = runs.final[i], runs.recall[i], runs.cpu[i]
            rows.append((problem, method.label, seed, runs.budget, *(short(float(value)) for value in last)))
    return rows


def ranked(every: Results) -> stats.Ranking | None:
    """Methods ranked over the problems; None where there are too few of either."""
    own = by_problem(every)
    return stats.ranking({problem: places(rows) for problem, rows in own.items()}, dict.fromkeys(own, False))


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def head(title: str, command: str, day: str, versions: Iterable[str]) -> str:
    """Markdown: what was compared, by which command, and when the last run was finished."""
    by = sorted(versions)
    several = f"\n\nNote: {several_versions(by)}." if len(by) > 1 else ""
    return f"# {title}\n\n`{command}`, mctsvs {' and '.join(by)}, last run of {day}.{several}\n\n"


def summary(every: Results, reference: ConfiguredMethod | None = None) -> str:
    """Markdown: a table for each problem and the mean ranks over problems.

    Args:
        every: The runs.
        reference: The method that the marks speak of: it is significantly better (+) or worse (-) than the other.
            The first on a problem where it was not run.

    Returns:
        The text, with a legend before the tables.
    """
    parts = []
    placed: dict[str, list[float]] = {}
    for problem, own in by_problem(every).items():
        first = referee(own, reference)
        for label, rank in places(own).items():
            placed.setdefault(label, []).append(rank)
        goal = "larger" if first.maximise else "smaller"
        notes = _feasible(own) + _powerless(own, first)
        text = f"After {first.budget} evaluations; {goal} is better.{notes}\n\n{table(own, first)}"
        parts.append(f"## {problem}\n\n{text}")
    if len(parts) > 1:
        order = sorted(placed.items(), key=lambda item: float(np.mean(item[1])))
        rows = [[label, f"{np.mean(given):.2f}", str(len(given))] for label, given in order]
        parts.append("## Mean rank\n\n" + markdown_table(["method", "mean rank", "problems"], rows))
        if (found := ranked(every)) is not None:
            parts[-1] += (
                f"\n\nFriedman's test that all are alike: p = {found.p_value:.2g}; mean ranks further apart than "
            )
            parts[-1] += (
                f"{found.difference:.2f} differ significantly (Nemenyi, {stats.CONFIDENCE}): see the figure of ranks."
            )
    return "\n\n".join([LEGEND, *parts]) + "\n"


def referee(own: Mapping[ConfiguredMethod, Runs], reference: ConfiguredMethod | None) -> Runs:
    """The runs of the reference on a problem; those of the first method where it was not run."""
    return next(iter(own.values())) if reference is None or reference not in own else own[reference]


def places(own: Mapping[ConfiguredMethod, Runs]) -> dict[str, float]:
    """The rank of each method on one problem, by its label: more feasible runs first, then the better mean.

    A mean of the lucky runs alone says nothing about the others.
    """
    keys = {method.label: (runs.missing, runs.merit) for method, runs in own.items()}
    order = {key: float(place) for place, key in enumerate(sorted(set(keys.values())))}
    return stats.ranks({label: order[key] for label, key in keys.items()}, maximise=False)


def _feasible(own: Mapping[ConfiguredMethod, Runs]) -> str:
    """How many runs have found a feasible value, where not all have."""
    found = {method.label: int(np.isfinite(runs.final).sum()) for method, runs in own.items()}
    if all(found[method.label] == len(runs.seeds) for method, runs in own.items()):
        return ""
    if not any(found.values()):
        return " No run found a feasible value: the ranks say nothing."
    counts = (f"{method.label} {found[method.label]} of {len(runs.seeds)}" for method, runs in own.items())
    return f" Runs that found a feasible value, of which alone are the means: {', '.join(counts)}."


def _powerless(own: Mapping[ConfiguredMethod, Runs], reference: Runs) -> str:
    """That there are too few seeds for any mark, where that is so."""
    pairs = max((len(reference.paired(runs)[0]) for runs in own.values() if runs is not reference), default=0)
    if pairs == 0 or stats.least_p(pairs) < stats.CONFIDENCE:
        return ""
    return (
        f" No difference can be significant: with {pairs} seed{'s' * (pairs > 1)} in common, p is at least "
        f"{stats.least_p(pairs):.2g}; {stats.FEWEST_PAIRS} are needed, and 10 are better."
    )


def table(own: Mapping[ConfiguredMethod, Runs], reference: Runs) -> str:
    """Markdown: a line for each method on one problem."""
    place, others = places(own), [(method, runs) for method, runs in own.items() if runs is not reference]
    corrected = stats.corrected_marks([reference.paired(runs) for _, runs in others], maximise=reference.maximise)
    holm = {method: sign for (method, _), sign in zip(others, corrected, strict=True)}
    rows = [[m.label, *_cells(runs, reference, place[m.label], holm.get(m, ""))] for m, runs in own.items()]
    return markdown_table(TABLE_COLUMNS, rows)


def _cells(runs: Runs, reference: Runs, rank: float, holm: str) -> list[str]:
    found = runs.at(runs.budget)
    known = runs.final[~np.isnan(runs.final)]
    worst = (known.min() if runs.maximise else known.max()) if len(known) else np.nan
    pair = reference.paired(runs)
    return [
        str(found.n) if found.n == len(runs.seeds) else f"{found.n} of {len(runs.seeds)}",
        str(found),
        number(float(worst)),
        "" if runs is reference else stats.mark(*pair, maximise=runs.maximise),
        "" if runs is reference else f"{stats.signed_rank(*pair):.2g}",
        holm,
        f"{rank:g}",
        number(stats.summary(runs.recall).mean),
        f"{stats.summary(runs.seconds).mean:.2f}",
    ]
