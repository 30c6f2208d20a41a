"""The page of the measured complexity: exponents and fitted constants beside the analysis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mctsvs.lab import complexity, figures
from mctsvs.lab.comparison import markdown_table
from mctsvs.lab.entry import PaperEntry
from mctsvs.lab.numbers import MADE, NOTE, Numbers
from mctsvs.lab.page_head import Making, head

AXES = {"t": "points $t$", "d": "variables $d$"}
MOST = 90  # per cent from which a term is said to dominate


def plots(measured: Sequence[complexity.Measurement]) -> list[figures.Plot]:
    """Every cost against t for some d, then against d for some t; the lines are power laws fitted to the upper half."""
    drawn = []
    for axis, other in ("td", "dt"):
        for what in complexity.TERMS:
            own = {(m.t, m.d) if axis == "t" else (m.d, m.t): 1e3 * m.seconds for m in measured if m.what == what}
            along, fixed = sorted({x for x, _ in own}), sorted({value for _, value in own})
            curves = []
            for value in (fixed[0], fixed[len(fixed) // 2], fixed[-1]):
                y = np.array([own[x, value] for x in along])
                under = np.array(complexity.upper(along), dtype=np.float64)
                constant, exponent = complexity.power_law(under.tolist(), y[-len(under) :].tolist())
                label = f"${other}$ = {value}: ${axis}^{{{exponent:.2f}}}$"
                law = under, constant * under**exponent
                curves.append(figures.Curve(label, np.array(along, dtype=np.float64), y, np.full(len(y), np.nan), law))
            name = "milliseconds" if what == "fit" else ""
            drawn.append(figures.Plot(complexity.WHAT[what], AXES[axis], name, curves, xscale="log", yscale="log"))
    return drawn


def text(entry: PaperEntry, measured: Sequence[complexity.Measurement], making: Making, day: str = "") -> str:
    slopes = complexity.slopes(measured)
    rows = [
        [
            complexity.WHAT[s.what],
            f"O({complexity.ANALYSIS[s.what]})",
            s.variable,
            f"{s.at}, {s.over}",
            f"{s.measured:.2f}",
            f"{s.analysis:.2f}",
            f"{_term(*s.largest) or 'constant'}, {100 * s.share:.0f} %",
        ]
        for s in slopes
    ]
    header = ["cost", "analysis", "variable", "where", "measured exponent", "the analysis' there", "largest term"]
    steps = [m.steps for m in measured if m.what == "maximise"]
    dominated = sum(round(100 * s.share) >= MOST for s in slopes)
    lead = (
        "Processor seconds on one BLAS thread. Exponents are slopes of log seconds over the upper half of the range. "
        '"The analysis\' there" is the slope of its terms with fitted constants and a constant for what every call '
        'costs, over the same range; "largest term" is the one of them that costs most where the range ends, and its '
        f"share there. One term makes up {MOST} % or more in {dominated} of {len(slopes)} rows; elsewhere "
        "several count. A whole maximisation is the library's with its defaults: "
        f"m is a pool of 256 candidates, valued at once, and {min(steps):.0f} to {max(steps):.0f} steps of a climb "
        f"(means of {complexity.CLIMBS}).\n\n"
    )
    fits = []
    for what in complexity.TERMS:
        constants, _ = complexity.fitted(measured, what)
        terms = [*complexity.TERMS[what], (0, 0)]
        shown = " + ".join(
            f"{c:.2g} {_term(p, q)}".strip() for c, (p, q) in zip(constants, terms, strict=True) if c > 0
        )
        wrong = complexity.misfit(measured, what)
        fits.append(f"- {complexity.WHAT[what]}: {shown} seconds; median error {100 * wrong:.0f} %")
    made = Numbers([(MADE, making.command, day), *((NOTE, line) for line in making.lines(entry))])
    page = head(entry, made) + lead + markdown_table(header, rows)
    return page + "\n\nFitted:\n\n" + "\n".join(fits) + "\n"


def _term(p: int, q: int) -> str:
    powers = {0: "", 1: "{}", 2: "{}²", 3: "{}³"}
    return " ".join(filter(None, (powers[p].format("t"), powers[q].format("d"))))
