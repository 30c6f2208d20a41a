"""The sections of a page about one run: a heading, a sentence or two that say what is seen, and the pictures.

The command, or the lines of Python, that repeat a run.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from mctsvs.utils.validation import listed
from mctsvs.visualization import curves, variables
from mctsvs.visualization.report import history_figures, variable_figures
from mctsvs.visualization.report.plotly import Figure
from mctsvs.visualization.run_data import MATTERS, RunData
from mctsvs.visualization.style import duration, number, shortened
from mctsvs.visualization.surrogate_slices import SurrogateSlices

SHOWN = 12  # variables in a table
SLICES = 6
THINKING = "This is being worked out, and will be here in a moment."
Figures = list[Figure]


@dataclass(frozen=True)
class Section:
    """One part of the page; its text is HTML, all that comes from outside escaped."""

    name: str
    title: str
    text: str
    figures: Figures = field(default_factory=list)


class ReportContext:
    """A run as its sections see it: what several of them need is computed once."""

    def __init__(self, run: RunData) -> None:
        self.run, self.surface = run, SurrogateSlices(run)
        self.curve, self.story = curves.convergence(run), curves.story(run)
        self.timeline = curves.timeline(run)

    @property
    def modelled(self) -> bool:
        return self.run.best is not None and bool(self.run.importance) and self.surface.exists

    def matter(self) -> list[str]:
        return [name for name, score in self.run.importance.items() if score > MATTERS]


def sections(run: RunData) -> list[Section]:
    """All of them, in the order of the page."""
    view = ReportContext(run)
    return [make(view) for make in MAKERS.values()]


def plural(count: int, word: str) -> str:
    return f"{count:,} {word}{'s' * (count != 1)}"


def paragraph(*sentences: str) -> str:
    return f"<p>{' '.join(sentence for sentence in sentences if sentence)}</p>"


def table(rows: list[tuple[Any, ...]], head: tuple[str, ...] = ()) -> str:
    """Of cells that are escaped here."""
    top = f"<thead><tr>{''.join(f'<th>{escape(cell)}</th>' for cell in head)}</tr></thead>" if head else ""
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table>{top}<tbody>{body}</tbody></table></div>'


def names_of(names: list[str], most: int = 6) -> str:
    return f"<b>{escape(listed([shortened(name) for name in names], most))}</b>"


def headline(view: ReportContext) -> Section:
    run, best = view.run, view.run.best
    budget = run.about.get("budget")
    failed = sum(trial.failed for trial in run.told)
    done = f"{len(run.told):,}" + (f" of {budget:,}" if budget and budget > len(run.told) else "")
    cards = [("evaluations", done, f"{failed:,} failed" if failed else "none failed")]
    if best is not None:
        at = f"at evaluation {best + 1:,}" + ("" if run.feasible[best] else ", breaks a constraint")
        cards.insert(0, ("lowest value" if run.sign < 0 else "highest value", number(run.values[best]), at))
    if run.importance:
        found = view.matter()
        cards.append(("variables that matter", f"{len(found)}", f"of {len(run.space):,}"))
    if view.timeline is not None:
        spent, thought = float(view.timeline.told.max()), float(view.timeline.thinking.sum())
        cards.append(("time", duration(spent), f"{duration(thought)} thinking"))
    shown = "".join(
        f'<div class="card"><div class="name">{name}</div><div class="value">{value}</div>'
        f'<div class="note">{note}</div></div>'
        for name, value, note in cards
    )
    return Section("headline", "Result", f'<div class="cards">{shown}</div>{_best_point(view)}')


def _best_point(view: ReportContext) -> str:
    run = view.run
    if run.best is None:
        return paragraph("No evaluation has succeeded yet.")
    advised = run.advice()
    trial, lucky = run.told[run.best], ""
    if advised is not None:
        trial = advised.trial
        expected = f"{number(advised.mean)} ± {number(advised.sd)}"
        take = f"Take the point of evaluation {trial.number + 1:,}, where the value is expected to be {expected}."
        lucky = paragraph("Values are noisy, and the best of them is a lucky one.", take)
    params = trial.params
    found = [name for name in view.matter() if name in params][:SHOWN]
    said, which = "", "best" if advised is None else "recommended"
    if found:
        verb = "matters" if len(view.matter()) == 1 else "matter"
        said = paragraph(f"{names_of(view.matter())} {verb}; the values of the {which} point are")
    elif run.importance:
        said = paragraph(f"No variable is known to matter yet. The values of the {which} point begin with")
    few = found or list(params)[:SHOWN]
    pairs = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(_cell(params[name]))}</dd></div>" for name in few)
    some = f'<dl class="values">{pairs}</dl>'
    if len(params) <= len(few):
        return lucky + said + some
    everything = table([(name, _cell(value)) for name, value in params.items()])
    return f"{lucky}{said}{some}<details><summary>all {plural(len(params), 'value')}</summary>{everything}</details>"


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def convergence(view: ReportContext) -> Section:
    curve = view.curve
    if not len(curve.improved):
        return Section("convergence", "Convergence", paragraph("No evaluation has succeeded yet."))
    last, n = int(curve.improved[-1]) + 1, len(curve.value)
    changes = len(curve.improved) - 1
    said = f"The best value changed {changes:,} times, the last time at evaluation {last:,} of {n:,}."
    since = f"The {plural(n - last, 'evaluation')} since then found nothing better." if n > last else ""
    drawn = [history_figures.convergence(curve, view.story)]
    return Section("convergence", "Convergence", paragraph(said, since), drawn)


def importance(view: ReportContext) -> Section:
    run = view.run
    if not run.importance:
        why = THINKING if run.about.get("thinking") else "Nothing can be told about single variables yet."
        return Section("importance", "Importance", paragraph(why))
    shown = variables.importance(run, surface=view.surface)
    if shown.matter:
        which = "variable matters" if shown.matter == 1 else "variables matter"
        said = f"{shown.matter} of {shown.total:,} {which}: {names_of(view.matter())}."
    else:
        said = "No variable stands out: either all matter a little, or there is not enough evidence yet."
    bars = "The bars say how sure it is that a variable matters; the dotted line is even odds."
    dots = "The dots say by how much the value changes along it, all else as at the best point; nine in ten functions "
    dots += "that fit the evaluations lie between the whiskers."
    drawn = [variable_figures.scores(shown)] + ([variable_figures.effects(shown)] if shown.effects else [])
    return Section("importance", "Importance", paragraph(said, bars, dots if shown.effects else ""), drawn)


def tree(view: ReportContext) -> Section:
    nodes = variables.tree(view.run)
    if nodes is None:
        why = THINKING if view.run.about.get("thinking") else "This method keeps no tree, or has not begun one."
        return Section("tree", "Tree of variables", paragraph(why))
    said = "Each block is a group of variables, split into those that look more important, on the left, and the rest."
    how = "The stronger its colour, the higher its value; hover for names, visits and value, click to look closer."
    return Section("tree", "Tree of variables", paragraph(said, how), [variable_figures.tree(nodes)])


def story(view: ReportContext) -> Section:
    shown = view.story
    if not shown.purpose:
        return Section("story", "Story of the search", paragraph("Nothing has happened yet."))
    bands = [f"{band.name} ({band.first:,}–{band.last:,})" for band in shown.bands]
    said = f"The search went through {escape(listed(bands, 12))}."
    tests = ""
    if shown.tests:
        tests = f"Of {plural(shown.tests, 'test')} of groups of variables, {shown.hits:,} gave a new value: "
        tests += "something in them matters. The others gave a known one: what they changed does not matter."
    drawn = [history_figures.story(shown, view.run.values)]
    return Section("story", "Story of the search", paragraph(said, tests), drawn)


def selection(view: ReportContext) -> Section:
    if not view.run.told:
        return Section("selection", "Variables moved", paragraph("Nothing has been evaluated yet."))
    shown = curves.selection(view.run)
    said = "How often each variable was moved over time: the stronger the colour, the larger the share of evaluations."
    more = len(view.run.space) - len(shown.names)
    rest = f"The {plural(more, 'other variable')} moved less often or matter less." if more > 0 else ""
    return Section("selection", "Variables moved", paragraph(said, rest), [history_figures.selection(shown)])


def _no_model(view: ReportContext) -> str:
    thinking = view.run.about.get("thinking")
    return THINKING if thinking else "There is no model yet: it takes eight evaluations with values that differ."


def slices(view: ReportContext) -> Section:
    if not view.modelled:
        return Section("slices", "Slices of the model", paragraph(_no_model(view)))
    said = "What a model of the evaluations expects when one variable of the best point changes and all others stay."
    how = "The band is two deviations, the dotted line the best point; dots are evaluations nearby."
    drawn = [variable_figures.cut(cut) for cut in view.surface.slices()[:SLICES]]
    return Section("slices", "Slices of the model", paragraph(said, how), drawn)


def contour(view: ReportContext) -> Section:
    names = view.surface.names
    if not view.modelled or len(names) < 2:
        return Section("contour", "Contours of the model", paragraph(_no_model(view)))
    pairs = list(itertools.combinations(names[:3], 2))
    drawn = [variable_figures.contour(view.surface.contour(*pair), minimise=view.run.sign < 0) for pair in pairs]
    said = "The same model over pairs of the most important variables: the stronger the colour, the better."
    how = "The star is the best point, the dots are evaluations nearby."
    return Section("contour", "Contours of the model", paragraph(said, how), drawn)


def parallel(view: ReportContext) -> Section:
    shown = variables.parallel(view.run)
    if not len(shown.place):
        return Section("parallel", "The best points", paragraph("No evaluation has succeeded yet."))
    said = f"The best {plural(shown.best, 'point')} in colour, the very best one thick, some others in grey."
    spread = np.ptp(shown.place[: shown.best], axis=0)
    tight = [name for name, width in zip(shown.names, spread, strict=True) if width < 0.1]
    agree = f"They agree on {names_of(tight)}." if tight and shown.best > 2 else ""
    return Section("parallel", "The best points", paragraph(said, agree), [variable_figures.parallel(shown)])


def constraints(view: ReportContext) -> Section:
    shown = curves.constraints(view.run)
    if shown is None:
        return Section("constraints", "Constraints", paragraph("No constraints were measured."))
    kept, n = int(shown.feasible.sum()), len(shown.evaluation)
    said = f"{kept:,} of {plural(n, 'evaluation')} keep all constraints; a value above 0 breaks one."
    rows = [(name, f"{broken:,}") for name, broken in zip(shown.names, shown.broken, strict=True)]
    broken = table(rows, ("constraint", "broken by"))
    return Section("constraints", "Constraints", paragraph(said) + broken, [history_figures.constraints(shown)])


def failures(view: ReportContext) -> Section:
    shown = curves.failures(view.run)
    if not shown.messages:
        return Section("failures", "Failures", paragraph("No evaluation failed."))
    said = (
        f"{plural(len(shown.evaluation), 'evaluation')} of {len(view.run.told):,} failed and were avoided from then on."
    )
    rows = [(message, times, last) for message, times, last in shown.messages[:SHOWN]]
    more = len(shown.messages) - SHOWN
    rest = paragraph(f"And {plural(more, 'other message')}.") if more > 0 else ""
    return Section("failures", "Failures", paragraph(said) + table(rows, ("message", "times", "last")) + rest)


def time(view: ReportContext) -> Section:
    shown = view.timeline
    if shown is None:
        return Section("time", "Time", paragraph("No times were kept with these evaluations."))
    evaluating, thinking = float(np.nansum(shown.evaluating)), float(shown.thinking.sum())
    share = thinking / (evaluating + thinking) if evaluating + thinking > 0 else 0.0
    said = f"{duration(evaluating)} of evaluating and {duration(thinking)} of thinking, {share:.0%} of both."
    each = f"An evaluation took {duration(float(np.nanmedian(shown.evaluating)))} (median)." if evaluating else ""
    drawn = [history_figures.time_used(shown)]
    if len(shown.workers) > 1:
        said = f"{len(shown.workers)} workers: {said}"
        drawn.append(history_figures.workers(shown))
    return Section("time", "Time", paragraph(said, each), drawn)


def settings(view: ReportContext) -> Section:
    rows = [(name, _cell(value)) for name, value in variables.settings(view.run)]
    command = f"<pre><code>{escape(how_to_repeat(view.run))}</code></pre>"
    return Section("settings", "Settings", f"{table(rows)}<p>To repeat it:</p>{command}")


MAKERS: Mapping[str, Callable[[ReportContext], Section]] = {
    "headline": headline,
    "convergence": convergence,
    "importance": importance,
    "tree": tree,
    "story": story,
    "selection": selection,
    "slices": slices,
    "contour": contour,
    "parallel": parallel,
    "constraints": constraints,
    "failures": failures,
    "time": time,
    "settings": settings,
}


def how_to_repeat(run: RunData) -> str:
    """From the note that the command line leaves in a study, else from what the run says of itself."""
    note = dict(run.about.get("user_attrs") or {}).get("command")
    if isinstance(note, dict) and isinstance(note.get("problem"), str):
        return _command(run, note)
    return _python(run)


def _command(run: RunData, note: dict[str, Any]) -> str:
    about = run.about
    words = ["mctsvs", "run", note["problem"], "--method", str(about.get("method", ""))]
    words += ["--budget", str(note.get("budget", len(run.told))), "--seed", str(about.get("seed", 0))]
    for name, value in dict(about.get("options") or {}).items():
        words += ["--set", f"{name}={value!r}"]
    variation = note.get("variation")
    variation = variation if isinstance(variation, dict) else {}
    words += [f"--{name}" for name in ("shuffle", "shift") if variation.get(name) is True]
    if variation.get("noise"):
        words += ["--noise", str(variation["noise"])]
    if variation.get("seed"):
        words += ["--problem-seed", str(variation["seed"])]
    for name in ("workers", "timeout"):
        if note.get(name):
            words += [f"--{name}", str(note[name])]
    words += ["--asynchronous"] * (note.get("asynchronous") is True) + ["--study", "again.db"]
    return shlex.join(words)


def _python(run: RunData) -> str:
    about = run.about
    budget = about.get("budget") or sum(trial.source != "imported" for trial in run.told)
    options = "".join(f", {name}={value!r}" for name, value in dict(about.get("options") or {}).items())
    return (
        "from mctsvs import Study\n\n"
        f'study = Study("again.db", space, direction="{run.direction}", method="{about.get("method", "auto")}", '
        f"seed={about.get('seed', 0)}{options})\n"
        f"study.optimize(f, budget={budget})  # space and f: your variables and your function"
    )
