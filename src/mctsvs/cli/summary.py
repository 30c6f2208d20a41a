"""What a study has learned, as `mctsvs show` prints it: the table of active variables and the tree of groups.

What is printed of a run or a study: a few lines, each with its name in front.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from mctsvs.methods.mcts_vs.tree import Node
from mctsvs.objectives.problem import Problem
from mctsvs.optimize import infeasibility
from mctsvs.optimizer import Optimizer
from mctsvs.optimizer.active_variables import VariableStatuses
from mctsvs.optimizer.trial import Recommendation, Trial
from mctsvs.study import Study
from mctsvs.utils.formatting import percent, printable, short_value
from mctsvs.utils.validation import StudyError
from mctsvs.visualization.terminal import bar

ROWS = 20  # variables of the table
NODES = 40  # of the tree
WIDE = 60  # columns, from which on there is room for bars and trials


def show_variables(study: Study, variables: VariableStatuses) -> None:
    """Table and tree, as wide as the terminal."""
    console, tree = Console(width=None if sys.stdout.isatty() else 120), study.tree if variables else None
    if variables.named:
        console.print()
        console.print(table(variables, study.best.params, console.width))
    if tree is not None:
        console.print()
        console.print(branches(tree, study.space.names))


def table(variables: VariableStatuses, best: Mapping[str, Any], width: int) -> Table:
    """The active variables: what each changes at least, the trials that prove it, and its value at the best point."""
    shown = set(variables.named[:ROWS])
    rows = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    rows.add_column("variable", max_width=max(10, width // 4), no_wrap=True, overflow="ellipsis")
    rows.add_column("at least", justify="right", no_wrap=True, overflow="ellipsis")
    rows.add_column("of range", justify="right", no_wrap=True)
    if width >= WIDE:
        rows.add_column("", no_wrap=True)
        rows.add_column("trials", no_wrap=True)
    rows.add_column("at the best point", no_wrap=True, overflow="ellipsis")
    for row in variables:
        if row.name in shown:
            value = printable(short_value(best[row.name]) if row.name in best else "-")
            effect = f"{row.effect:.3g}" + (f" ({printable(row.output)})" if row.output != "value" else "")
            drawn = Text(bar(row.share, min(30, width // 6)), style="cyan")
            more: list[RenderableType] = [drawn, "{} and {}".format(*row.evidence)] if width >= WIDE else []
            rows.add_row(Text(printable(row.name)), Text(effect), percent(row.share), *more, Text(value))
    rest = len(variables.named) - len(shown)
    if rest:
        rows.add_row(Text(f"{rest} more", style="dim"))
    return rows


def branches(root: Node, names: Sequence[str]) -> Tree:
    """The tree of groups of variables, left before right; of a very large one the upper part."""
    drawn = Tree(_label(root, names), guide_style="dim")
    ahead, left = [(root, drawn)], NODES
    while ahead:
        node, branch = ahead.pop(0)
        for child in node.children or ():
            if left == 0:
                branch.add(Text("...", style="dim"))
                break
            left -= 1
            ahead.append((child, branch.add(_label(child, names))))
    return drawn


def _label(node: Node, names: Sequence[str]) -> Text:
    return Text(printable(node.line(names)), no_wrap=True, overflow="ellipsis")


INDENT = 16  # of the texts
SHOWN = 12  # variables listed
INFEASIBLE = "none: no evaluation was feasible"
Rows = list[tuple[str, str]]


def show(rows: Rows) -> None:
    """Print them under each other; names and messages may be anybody's."""
    width = shutil.get_terminal_size().columns - INDENT if sys.stdout.isatty() else 10**6
    for name, text in rows:
        lines = textwrap.wrap(printable(text), max(20, width), break_on_hyphens=False) or [""]
        print(f"{name:<{INDENT}}" + ("\n" + " " * INDENT).join(lines if len(lines) > 1 else [printable(text)]))


def summarise(
    owner: Optimizer | Study, problem: Problem | None, *more: tuple[str, str], name: str = ""
) -> VariableStatuses:
    """Print the run in a few lines, `more` among them; what its evaluations say of the variables."""
    trials, name = owner.trials, problem.name if problem else name
    failed = [t for t in trials if t.failed and t.counts]
    imported = sum(t.source == "imported" for t in trials)
    done = sum(t.counts for t in trials)
    counts = [f"{done}"]
    counts += [f"{len(failed)} of them failed"] if failed else []
    counts += [f"{imported} imported"] if imported else []
    counts += [f"{len(owner.pending)} waiting"] if owner.pending else []
    thinking = sum(t.times.thinking for t in trials)
    path = [("study", str(owner.path))] if isinstance(owner, Study) else []
    rows = [
        *path,
        ("problem", f"{name + ', ' if name else ''}{counted_variables(len(owner.space))}, {owner.direction}"),
        ("method", f"{owner.method}, seed {owner.seed}"),
        *(best(owner.best, problem) if owner.has_best else _front(owner) or [("best value", _none(len(failed), done))]),
        ("evaluations", ", ".join(counts)),
        ("thinking", f"{thinking:.1f} s, {1e3 * thinking / max(done, 1):.1f} ms each"),
        *more,
    ]
    if failed:
        rows.append(("last failure", f"trial {failed[-1].number}: {failed[-1].message or 'no message'}"))
    found = VariableStatuses()
    if owner.has_best and len(trials) - len(owner.pending) > 2:
        found = _variables(owner)
        rows += variables(problem, found, owner.best.params)
        rows += _recommended(owner, found)
    show(rows)
    return found


def counted_variables(count: int) -> str:
    return f"{count} variable{'s' * (count != 1)}"


def _none(failed: int, done: int) -> str:
    return "none: all evaluations failed" if done and failed == done else INFEASIBLE if done else "none yet"


def _front(owner: Optimizer | Study) -> Rows:
    """Of several objectives; nothing for one, or without a front."""
    if owner.objectives is None or not len(owner.front):
        return []
    front = owner.front
    values = zip(front.objectives.names, front.knee.values or (), strict=True)
    knee = "  ".join(f"{name}={value:.6g}" for name, value in values)
    reference = ", ".join(f"{value:.6g}" for value in front.reference)
    return [
        ("front", f"{len(front)} points, hypervolume {front.hypervolume:.6g} from {reference}"),
        ("knee", f"{knee}, trial {front.knee.number}"),
    ]


def _variables(owner: Optimizer | Study) -> VariableStatuses:
    """What needs the method itself is left out where that is a file that the study alone names."""
    try:
        return owner.variables()
    except StudyError:
        return VariableStatuses()


def _recommended(owner: Optimizer | Study, found: VariableStatuses) -> Rows:
    """Where values are known to be noisy."""
    try:
        noisy = (owner.optimizer if isinstance(owner, Study) else owner).noisy
        return recommended(owner.recommend(), found) if noisy and owner.best.feasible else []
    except StudyError:
        return []


def optimum(problem: Problem | None) -> str:
    """Of a problem whose optimum is known, behind the best value."""
    return "" if problem is None or problem.optimum is None else f"   (optimum {problem.optimum:.6g})"


def best(trial: Trial, problem: Problem | None) -> Rows:
    """Value and measured constraints of the best trial; where none is feasible, of the one that violates them least."""
    value = (
        f"{trial.value:.6g}, trial {trial.number}{optimum(problem)}"
        if trial.has_value
        else "none: no evaluation has a value"
    )
    where = "at the least violation" if trial.constraints else "without measured constraints"
    least = f"{INFEASIBLE}; {trial.value:.6g} {where}, trial {trial.number}"
    rows: Rows = [("best value", value if trial.feasible else least)]
    if trial.constraints:
        measured = "  ".join(f"{name}={value:.6g}" for name, value in trial.constraints.items())
        rows.append(("constraints", f"{measured}   ({'all hold' if trial.feasible else 'violated'}: at most 0)"))
    return rows


def infeasible(evaluations: int, trial: Trial) -> str:
    """Where that is the best trial."""
    return f"none of the {evaluations} evaluations was feasible: {infeasibility(trial, f'trial {trial.number}')}"


def variables(problem: Problem | None, found: VariableStatuses, params: Mapping[str, Any]) -> Rows:
    """Which variables act, and their values at the best point, or all values if they are few."""
    truth = set() if problem is None or problem.active is None else {f"x{i}" for i in problem.active}
    known = f"{len(truth.intersection(found.named))} of the {len(truth)} that truly act are named"
    words = [found.summary, found.rest, known if truth and found.named else ""]
    rows: Rows = [("variables", "; ".join(filter(None, words)))] if found else []
    return rows + ([("best point", _point(found, params))] if params else [])


def recommended(chosen: Recommendation, found: VariableStatuses) -> Rows:
    """The trial to take where values are noisy, and what to expect there: the best value is a lucky one."""
    words = f"{chosen}, trial {chosen.trial.number}; the best value is a lucky one"
    return [("recommended", words), ("its point", _point(found, chosen.params))]


def _point(found: VariableStatuses, params: Mapping[str, Any]) -> str:
    names: Sequence[str] = list(params)
    there = [name for name in found.named if name in params]
    shown = names if len(names) <= SHOWN else there[:SHOWN] or names[:SHOWN]
    values = "  ".join(f"{name}={short_value(params[name])}" for name in shown)
    more = len(names) - len(shown)
    return values + (f"  and {more} more" if more else "")
