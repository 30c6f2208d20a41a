"""The page of the measured complexity: exponents and fitted constants beside the analysis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mctsvs.lab import complexity, figures
from mctsvs.lab.comparison import markdown_table
from mctsvs.lab.entry import Entry
from mctsvs.lab.frame import head


def panels(measured: Sequence[complexity.Measurement]) -> list[figures.Panel]:
    """For both costs: against t for some d, and against d for some t; lines are the fitted analysis."""
    drawn = []
    for what in complexity.TERMS:
        own = {(m.t, m.d): 1e3 * m.seconds for m in measured if m.what == what}
        points, variables = sorted({t for t, _ in own}), sorted({d for _, d in own})
        for axis in ("t", "d"):
            along, fixed = (points, variables) if axis == "t" else (variables, points)
            some = [fixed[0], fixed[len(fixed) // 2], fixed[-1]]
            names = ("fewest", "middle", "most")
            curves = []
            for name, value in zip(names, some, strict=True):
                y = np.array([own[(x, value) if axis == "t" else (value, x)] for x in along])
                curves.append(figures.Curve(name, np.array(along, dtype=np.float64), y, np.full(len(y), np.nan)))
            other = "d" if axis == "t" else "t"
            title = f"{'fit' if what == 'fit' else 'maximise'}; {other} = {', '.join(map(str, some))}"
            drawn.append(figures.Panel(title, axis, "milliseconds" if axis == "t" else "", curves, {}, "log", "log"))
    return drawn


def text(
    entry: Entry, measured: Sequence[complexity.Measurement], command: str, quick: bool, notes: Sequence[str]
) -> str:
    rows = [
        [
            complexity.WHAT[s.what],
            f"O({complexity.ANALYSIS[s.what]})",
            s.variable,
            f"{s.at}, {s.over}",
            f"{s.measured:.2f}",
            f"{s.analysis:.2f}",
        ]
        for s in complexity.slopes(measured)
    ]
    header = ["cost", "analysis", "variable", "where", "measured exponent", "the analysis' there"]
    fits = []
    for what in complexity.TERMS:
        constants, _ = complexity.fitted(measured, what)
        terms = [*complexity.TERMS[what], (0, 0)]
        shown = " + ".join(
            f"{c:.2g} {_term(p, q)}".strip() for c, (p, q) in zip(constants, terms, strict=True) if c > 0
        )
        wrong = complexity.misfit(measured, what)
        fits.append(f"- {complexity.WHAT[what]}: {shown} seconds; median error {100 * wrong:.0f} %")
    lead = (
        'Exponents are slopes of log seconds over the upper half of the range. "The analysis\' there" is the slope of '
        "its terms with fitted constants and a constant for what every call costs, over the same range: at these sizes "
        "no term dominates yet.\n\n"
    )
    page = head(entry, command, quick, False, notes) + lead + markdown_table(header, rows)
    return page + "\n\nFitted:\n\n" + "\n".join(fits) + "\n"


def _term(p: int, q: int) -> str:
    powers = {0: "", 1: "{}", 2: "{}²", 3: "{}³"}
    return " ".join(filter(None, (powers[p].format("t"), powers[q].format("d")))) or ""
