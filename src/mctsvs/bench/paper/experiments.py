"""The experiments of the paper: what a table or figure is made of, and each of them as one declaration.

Section and label names are those of the paper (Song et al., NeurIPS 2022).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mctsvs.bench.algorithms import ConfiguredMethod
from mctsvs.bench.paper import published_values
from mctsvs.bench.paper.complexity import Complexity
from mctsvs.bench.paper.metrics import Best, Metric, Recall, Regret, Seconds, Significance
from mctsvs.bench.paper.published_values import AUTHORS_PROGRAM, FOUR, RECALL_PROGRAM

Axis = Literal["evaluations", "seconds"]


@dataclass(frozen=True)
class Panel:
    """The cases compared on a problem, in one set of axes."""

    problem: str
    cases: tuple[ConfiguredMethod, ...]
    axis: Axis = "evaluations"


@dataclass(frozen=True)
class EntryDescription:
    """What there is to read about it."""

    place: str  # in the paper
    labels: tuple[str, ...]  # in the paper's source
    title: str
    says: str  # what the paper reports
    note: str = ""


@dataclass(frozen=True)
class RunPlan:
    """How much is run."""

    seeds: tuple[int, ...] = tuple(range(2021, 2026))
    budget: int = 600
    budgets: Mapping[str, int] = field(default_factory=dict)  # of methods too slow for the whole budget
    fewer: Mapping[str, int] = field(default_factory=dict)  # how many of the seeds, for methods too slow for all
    quick: int = 60  # evaluations with --quick


@dataclass(frozen=True)
class PublishedResults:
    """The numbers of others to set beside ours."""

    printed: Mapping[ConfiguredMethod, Mapping[str, Any]] = field(default_factory=dict)
    """Case -> problem -> number the paper prints; in its table of tests (mean, standard deviation, mark)."""
    logs: tuple[tuple[str, str, str], ...] = ()
    """Where the authors' runs of this entry lie, if not at the usual place (`published_values`)."""
    unlike: tuple[str, ...] = ()
    """Problems on which the authors' runs of this entry are on another scale than their figure."""


@dataclass(frozen=True)
class PaperEntry:
    """One table or figure of the paper."""

    name: str
    about: EntryDescription
    panels: tuple[Panel, ...]
    measure: Metric
    effort: RunPlan = RunPlan()
    published: PublishedResults = PublishedResults()

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(panel.problem for panel in self.panels))

    def cases(self, problem: str | None = None) -> tuple[ConfiguredMethod, ...]:
        """All cases on a problem, or on any, in the order of the panels."""
        panels = [panel for panel in self.panels if problem in (None, panel.problem)]
        return tuple(dict.fromkeys(case for panel in panels for case in panel.cases))

    @property
    def methods(self) -> set[str]:
        return {case.method for case in self.cases()}


USUAL, UNKNOWN = RunPlan(), PublishedResults()
THIRTY = tuple(range(2021, 2051))
FIFTY = tuple(range(2021, 2071))


def _cases(names: str) -> tuple[ConfiguredMethod, ...]:
    return tuple(ConfiguredMethod(name) for name in names.split())


BO = _cases("mcts-vs-bo dropout-bo bo")
TURBO = _cases("mcts-vs-turbo dropout-turbo turbo")
RS = _cases("mcts-vs-rs dropout-rs random")
RIVALS = _cases("mcts-vs-bo mcts-vs-turbo turbo la-mcts-turbo hesbo cma-es vae-bo")
RIVALS_SLOW = (*RIVALS[:4], *_cases("saasbo hesbo alebo"), *RIVALS[5:])
NAS = (*RIVALS[:4], *_cases("hesbo alebo cma-es vae-bo"))
STRONG = RIVALS[:5]
TIMED = (
    ConfiguredMethod("sklearn-bo"),
    ConfiguredMethod("sklearn-bo", {"samples": 1}),
    *_cases("bo dropout-bo mcts-vs-bo"),
    ConfiguredMethod("mcts-vs-bo", {"acquisition_search": "candidates"}),
    *_cases("turbo la-mcts-turbo mcts-vs-turbo"),
)
STANDS_IN = {"NASBench201": "NASBench201_mean"}
"""What is run where a problem's data is missing: the same cells, other measurements of them."""
SLOW_SEEDS = {"saasbo": 1, "mcts-vs-saasbo": 2, "alebo": 3}


def _option(name: str, values: tuple[Any, ...], method: str = "mcts-vs-bo") -> tuple[ConfiguredMethod, ...]:
    return tuple(ConfiguredMethod(method, {name: value}) for value in values)


def _both_axes(problems: tuple[str, ...], cases: tuple[ConfiguredMethod, ...]) -> tuple[Panel, ...]:
    return tuple(Panel(p, cases, axis) for axis in ("evaluations", "seconds") for p in problems)


def _entry(
    name: str,
    place: str,
    labels: tuple[str, ...],
    title: str,
    says: str,
    panels: tuple[Panel, ...],
    measure: Metric | None = None,
    *,
    note: str = "",
    effort: RunPlan = USUAL,
    published: PublishedResults = UNKNOWN,
) -> PaperEntry:
    """Default: the best value so far, five seeds and 600 evaluations."""
    about = EntryDescription(place, labels, title, says, note)
    return PaperEntry(name, about, panels, measure or Best(), effort, published)


_ENTRIES = (
    _entry(
        "synthetic1",
        "Figure 1 (Section 5.1)",
        ("fig:synthetic1", "fig:enlargement_synthetic1"),
        "Variable selection against none",
        "Dropout-BO and MCTS-VS-BO are better than vanilla BO, and MCTS-VS-BO is the best; the same with TuRBO, "
        "where MCTS-VS-TuRBO needs more evaluations to pass Dropout-TuRBO.",
        tuple(Panel(problem, cases) for cases in (BO, TURBO) for problem in FOUR[2:]),
    ),
    _entry(
        "synthetic2",
        "Figure 2 (Section 5.1)",
        ("fig:synthetic2", "fig:enlargement_synthetic2"),
        "Comparison with the state of the art on synthetic functions",
        "MCTS-VS is the best except on Levy10_100, where it is a little worse than TuRBO. SAASBO is similar to "
        "MCTS-VS; HeSBO is moderate on Hartmann and good on Levy; VAE-BO is the worst.",
        (
            Panel("Levy10_100", RIVALS),
            Panel("Levy10_300", RIVALS),
            Panel("Hartmann6_300", RIVALS_SLOW),
            Panel("Hartmann6_500", RIVALS_SLOW),
        ),
        effort=RunPlan(budgets={"saasbo": 200, "alebo": 200}, fewer=SLOW_SEEDS),
    ),
    _entry(
        "time",
        "Table 1 (Section 5.1)",
        ("tab:time",),
        "Seconds that the methods take",
        "Selecting variables takes less time than vanilla BO or TuRBO; MCTS-VS is a little slower than Dropout "
        "and much faster than LA-MCTS-TuRBO; SAASBO takes 500 to 1000 times, HeSBO and ALEBO 10 to 500 times as "
        "long.",
        tuple(
            Panel(p, (*TIMED, *_cases("saasbo hesbo alebo cma-es" if "Hartmann" in p else "hesbo cma-es")))
            for p in FOUR
        ),
        Seconds(ConfiguredMethod("sklearn-bo")),
        effort=RunPlan(seeds=THIRTY, budget=100, fewer=SLOW_SEEDS, quick=40),
        published=PublishedResults(printed=published_values.SECONDS, logs=(("time_logs", "{problem}", "{algorithm}"),)),
        note="`sklearn-bo` is vanilla BO on scikit-learn's Gaussian process with 1,024 candidates, the paper's "
        "kind of Vanilla BO, run beside the others: three points for each fit as in MCTS-VS, or one as in "
        "textbooks. `acquisition_search=candidates` is the paper's own search, the best of as many candidates. "
        "The seconds are processor time of ask and tell on one thread: wall clock on a quiet machine, and "
        "comparable on a busy one.",
    ),
    _entry(
        "recall",
        "Table 2 (Section 5.1)",
        ("tab:theory",),
        "Recall: the share of the valid variables among those selected",
        "The recall of MCTS-VS is between 0.35 and 0.433, that of Dropout d/D.",
        tuple(Panel(p, (*_cases("dropout-bo mcts-vs-bo"), AUTHORS_PROGRAM, RECALL_PROGRAM)) for p in FOUR),
        Recall(),
        published=PublishedResults(printed=published_values.RECALL),
        note="`variant=authors-recall,split_size=7` is what the authors' script for this table runs, by default "
        "with 200 evaluations: leaves are split at the median score, not at the mean, and only with seven "
        "variables or more, where the paper says N_split = 3.",
    ),
    _entry(
        "nas",
        "Figures 3 and 11 (Section 5.2, Appendix E)",
        ("fig:nas", "fig:appendixnas"),
        "NAS-Bench-101 and NAS-Bench-201, by evaluations and by seconds",
        "By evaluations all BO methods are similar; by wall clock MCTS-VS-BO is clearly the fastest to the best value.",
        _both_axes(("NASBench101", "NASBench201"), NAS),
        effort=RunPlan(budget=200, budgets={"alebo": 50}, fewer=SLOW_SEEDS),
    ),
    _entry(
        "nas-more",
        "Figure 12 (Appendix E)",
        ("fig:additionalnas",),
        "More NAS problems: 1Shot1, TransNAS-Bench-101, ASR",
        "MCTS-VS-BO uses the least time to achieve the best performance.",
        _both_axes(("NASBench1Shot1", "TransNAS", "NASBenchASR"), NAS),
        effort=RunPlan(budget=200, budgets={"alebo": 50}, fewer=SLOW_SEEDS),
        note="The phoneme error rate of NAS-Bench-ASR is minimised here; the authors' program maximised it, so "
        "their runs on it are left out.",
    ),
    _entry(
        "rl",
        "Figure 4 (Section 5.2)",
        ("fig:rl",),
        "MuJoCo: linear policies of Hopper and Walker2d",
        "MCTS-VS-TuRBO is the best on Hopper, MCTS-VS-BO on Walker2d; most methods vary a lot.",
        tuple(Panel(p, RIVALS[:-1]) for p in ("Hopper", "Walker2d")),
        effort=RunPlan(budget=1200, quick=30),
        note="Here a value is a function of x alone. In the authors' runs the mean and spread that observations "
        "are normalised by go on from one evaluation to the next, the starting states are new each time and the "
        "environments are of version 2, so their values are not of quite the same problem.",
    ),
    _entry(
        "optimiser-rs",
        "Figure 6 (Appendix D)",
        ("fig:ablation:exp1",),
        "MCTS-VS with random search",
        "MCTS-VS-RS is better than Dropout-RS and RS.",
        tuple(Panel(p, RS) for p in FOUR[2:]),
    ),
    _entry(
        "optimiser",
        "Figure 7 (Appendix D)",
        ("fig:ablation:solver",),
        "The optimiser of the selected variables",
        "As the ratio of valid variables grows, MCTS-VS-TuRBO passes MCTS-VS-RS and MCTS-VS-BO, and RS becomes worse.",
        tuple(
            Panel(p, _cases("mcts-vs-rs mcts-vs-bo mcts-vs-turbo"))
            for p in ("Hartmann6_500", "Hartmann6_5_500", "Hartmann6_10_500")
        ),
        published=PublishedResults(
            logs=(("ablation_logs", "{problem}_solver", "{algorithm}"),), unlike=("Hartmann6_5_500", "Hartmann6_10_500")
        ),
        note="The authors' logs on Hartmann6_5_500 and Hartmann6_10_500 are on another scale (they never exceed "
        "6.6, as with the decaying weights of Hartmann6_5_500_v), so only Hartmann6_500 is compared with them. "
        "Another group of their logs has 20.0 for MCTS-VS-BO and 24.2 for MCTS-VS-TuRBO on Hartmann6_10_500.",
    ),
    _entry(
        "fill-in",
        "Figure 8a (Appendix D)",
        ("fig:fill in", "fig:ablation:fill in and k"),
        "Values of the variables that are not selected",
        "Best-k is much better than random; the average of the best k lies between.",
        (Panel("Hartmann6_300", _option("fill_in", ("best-k", "average-best-k", "random"))),),
        published=PublishedResults(logs=(("ablation_logs", "strategy", "lamcts_vs_bo_{fill_in}"),)),
    ),
    _entry(
        "k",
        "Figure 8b (Appendix D)",
        ("fig:paramk",),
        "k of the best-k fill-in",
        "A small k is better early and converges too soon; a large k is worse early and may end better.",
        (Panel("Hartmann6_300", _option("k", (1, 5, 10, 15, 20))),),
        published=PublishedResults(logs=(("ablation_logs", "param_k", "lamcts_vs_bo_{k}"),)),
    ),
    _entry(
        "cp",
        "Figure 9 (Appendix D)",
        ("fig:ablationcp",),
        "The exploration constant C_p",
        "Too small a C_p is worse, too large may explore too much; overall the method is not very sensitive to it.",
        tuple(Panel(p, _option("cp", (0.01, 0.1, 1, 10, 100))) for p in FOUR),
        published=PublishedResults(logs=(("ablation_logs", "{problem}_Cp", "lamcts_vs_bo_{cp}"),)),
    ),
    _entry(
        "samples",
        "Figure 10a (Appendix D)",
        ("fig:number of samples", "fig:ablation1"),
        "Samples in each iteration: N_v subset pairs of N_s points",
        "N_v = 2, N_s = 3 is the best.",
        (
            Panel(
                "Hartmann6_300",
                tuple(
                    ConfiguredMethod("mcts-vs-bo", {"subset_batches": v, "samples": s})
                    for v in (2, 5)
                    for s in (3, 5, 10)
                ),
            ),
        ),
        published=PublishedResults(logs=(("ablation_logs", "num_samples", "lamcts_vs_bo_{subset_batches}_{samples}"),)),
    ),
    _entry(
        "n-bad",
        "Figure 10b (Appendix D)",
        ("fig:nbad",),
        "The threshold N_bad for a new tree",
        "N_bad = 5 is the best.",
        (Panel("Hartmann6_300", _option("bad_limit", (1, 5, 10, 15, 20))),),
        published=PublishedResults(logs=(("ablation_logs", "N_bad", "lamcts_vs_bo_{bad_limit}"),)),
    ),
    _entry(
        "n-split",
        "Figure 10c (Appendix D)",
        ("fig:nsplit",),
        "The threshold N_split for splitting a leaf",
        "N_split has little influence on the values; the smaller, the shorter the time.",
        (Panel("Hartmann6_300", _option("split_size", (3, 6, 10, 20, 50))),),
        published=PublishedResults(logs=(("ablation_logs", "min_num_variables", "lamcts_vs_bo_{split_size}"),)),
    ),
    _entry(
        "low-high-d",
        "Figure 13 (Appendix E)",
        ("fig:additionalexp",),
        "Few and very many variables: Hartmann6_100 and Hartmann6_1000",
        "On Hartmann6_100 TuRBO is the best and MCTS-VS next; on Hartmann6_1000 MCTS-VS-BO is clearly ahead.",
        tuple(Panel(p, STRONG) for p in ("Hartmann6_100", "Hartmann6_1000")),
        effort=RunPlan(quick=36),
    ),
    _entry(
        "various-extent",
        "Figure 14 (Appendix E)",
        ("fig:various_extent",),
        "Variables that matter to various extents",
        "MCTS-VS-BO is the best.",
        (Panel("Hartmann6_5_500_v", STRONG),),
    ),
    _entry(
        "increasing-ratio",
        "Figure 15 (Appendix E)",
        ("fig:increasing_ratio",),
        "A growing share of valid variables",
        "LA-MCTS-TuRBO is the worst. With few valid variables MCTS-VS-TuRBO is better than TuRBO, with many TuRBO is.",
        tuple(
            Panel(p, _cases("mcts-vs-turbo la-mcts-turbo turbo"))
            for p in ("Hartmann6_500", *(f"Hartmann6_{k}_500" for k in (5, 10, 15, 20, 25, 30, 83)))
        ),
        effort=RunPlan(quick=36),
        published=PublishedResults(unlike=("Hartmann6_5_500",)),
        note="The authors' logs on Hartmann6_5_500 mix two scales from seed to seed, so they are left out.",
    ),
    _entry(
        "hierarchy",
        "Figure 16 (Appendix E)",
        ("fig:hierarchy-vs",),
        "Hierarchical selection: SAASBO inside the tree",
        "MCTS-VS-SAASBO and SAASBO find similar values; 200 evaluations take about 6,000 s and 45,000 s.",
        tuple(Panel("Hartmann6_500", _cases("mcts-vs-saasbo saasbo"), axis) for axis in ("evaluations", "seconds")),
        effort=RunPlan(budget=200, fewer=SLOW_SEEDS, quick=26),
    ),
    _entry(
        "lasso",
        "Figure 17 (Appendix E)",
        ("fig:lasso",),
        "LASSO as the selector",
        "MCTS-VS is the best with BO and with TuRBO; with BO, LASSO can be worse than Dropout.",
        (
            Panel("Hartmann6_300", _cases("mcts-vs-bo lasso-bo dropout-bo")),
            Panel("Hartmann6_300", _cases("mcts-vs-turbo lasso-turbo dropout-turbo")),
        ),
    ),
    _entry(
        "significance",
        "Table 4 (Appendix E)",
        ("tab:significance_test",),
        "50 runs and the Wilcoxon signed-rank test",
        "MCTS-VS-BO has the best mean except on Levy10_100, where TuRBO has; MCTS-VS-TuRBO is significantly "
        "better than LA-MCTS-TuRBO everywhere, and than TuRBO on Hartmann.",
        tuple(Panel(p, (*_cases("mcts-vs-bo mcts-vs-turbo la-mcts-turbo turbo"), AUTHORS_PROGRAM)) for p in FOUR),
        Significance(ConfiguredMethod("mcts-vs-turbo")),
        effort=RunPlan(seeds=FIFTY),
        published=PublishedResults(printed=published_values.TESTS, logs=(("repeat_logs", "{problem}", "{algorithm}"),)),
    ),
    _entry(
        "dropout-d",
        "Not in the paper; from the authors' logs",
        (),
        "Dropout with other numbers of variables than the paper's",
        "Dropout is told d, the number of valid variables (6 and 10).",
        tuple(
            Panel(p, (ConfiguredMethod("mcts-vs-bo"), *_option("d", (3, 6, 10, 20, 30), "dropout-bo"))) for p in FOUR
        ),
        published=PublishedResults(logs=(("dropout_logs", "{problem}", "{algorithm}"),)),
    ),
    _entry(
        "regret",
        "Theorem 4.2 (Section 4)",
        ("the:regret", "eq-main-theo"),
        "Cumulative regret of GP-UCB and the two terms of its bound",
        "Selecting variables lowers the Gaussian process term through beta_t and adds a term for the importance "
        "of the variables that are not selected: a good selector selects important ones.",
        tuple(Panel(p, _cases("ucb-all ucb-dropout ucb-mcts-vs")) for p in ("Hartmann6_100", "Levy10_100")),
        Regret(),
        effort=RunPlan(budget=312, quick=42),
    ),
    _entry(
        "complexity",
        "Computational complexity (Section 4 and Appendix B.2)",
        ("sec:complexity",),
        "Cost of fitting and of maximising the acquisition",
        "Fitting takes O(t^3 + t^2 d_t), maximising O(m (t^2 + t d_t + d_t^2)): fewer selected variables cost less.",
        (),
        Complexity(),
        effort=RunPlan(seeds=(), budget=1600, quick=400),
    ),
)

ENTRIES: Mapping[str, PaperEntry] = {entry.name: entry for entry in _ENTRIES}
