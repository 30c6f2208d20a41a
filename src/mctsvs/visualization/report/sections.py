"""The sections of a page about one run: a heading, a sentence or two that say what is seen, and the pictures.

A section without anything to show has no text, and the page hides it.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from mctsvs.optimizer.trial import Trial
from mctsvs.utils.formatting import duration, listed, plural, short_number, short_value, shortened
from mctsvs.visualization import curves, variables
from mctsvs.visualization.report import figures
from mctsvs.visualization.run_data import RunData
from mctsvs.visualization.style import Figure
from mctsvs.visualization.surrogate_slices import SurrogateSlices

SHOWN = 12  # variables in a table
SLICES = 6
THINKING = "This is being worked out, and will be here in a moment."
Content = tuple[str, list[Figure]]
NOTHING: Content = ("", [])


@dataclass(frozen=True)
class Section:
    """One part of the page; its text is HTML, all that comes from outside escaped. Without text it is hidden."""

    name: str
    title: str
    text: str
    figures: list[Figure] = field(default_factory=list)


class ReportContext:
    """A run as its sections see it: what several of them need is computed once."""

    def __init__(self, run: RunData) -> None:
        self.run, self.surface = run, SurrogateSlices(run, SLICES)
        self.curve, self.story = curves.convergence(run), curves.story(run)
        self.timeline = curves.timeline(run)

    @property
    def thinking(self) -> Content:
        """What a section says while what it shows is computed beside a live page; nothing on any other page."""
        return (paragraph(THINKING), []) if self.run.about.get("thinking") else NOTHING

    @property
    def which(self) -> str:
        """The point that is shown."""
        return "best" if self.run.recommendation is None else "recommended"

    @property
    def modelled(self) -> bool:
        """Whether there is a model, and variables that are known to act to draw it over."""
        return not self.surface.missing


def sections(run: RunData) -> list[Section]:
    """All of them, in the order of the page."""
    context = ReportContext(run)
    return [Section(name, title, *make(context)) for name, (title, make) in MAKERS.items()]


def paragraph(*sentences: str) -> str:
    return f"<p>{' '.join(sentence for sentence in sentences if sentence)}</p>"


def table(rows: list[tuple[Any, ...]], head: tuple[str, ...] = ()) -> str:
    """Of cells that are escaped here."""
    top = f"<thead><tr>{''.join(f'<th>{escape(cell)}</th>' for cell in head)}</tr></thead>" if head else ""
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table>{top}<tbody>{body}</tbody></table></div>'


def sentence(run: RunData, words: str) -> str:
    """Words about the variables as a sentence; one that begins with the name of a variable keeps its first letter."""
    return escape(f"{words if run.variables.named else words[:1].upper() + words[1:]}.")


def names_of(names: list[str], most: int = 6) -> str:
    return f"<b>{escape(listed([shortened(name) for name in names], most))}</b>"


def headline(context: ReportContext) -> Content:
    run, best = context.run, context.run.best
    budget = run.about.get("budget")
    made, imported = len(run.counted), len(run.told) - len(run.counted)
    done = f"{made:,}" + (f" of {budget:,}" if budget and budget > made else "")
    note = f"{run.failed:,} failed" if run.failed else "none failed"
    cards = [("evaluations", done, note + (f", {imported:,} imported" if imported else ""))]
    if best is not None:
        at = f"trial {run.numbers[best]}" + ("" if run.feasible[best] else f", {_shortfall(run.told[best])}")
        at += "" if run.recommendation is None else ", a lucky one"
        name = ("lowest value" if run.sign < 0 else "highest value") if run.feasible[best] else "least violation, value"
        cards.insert(0, (name, short_number(run.values[best]), at))
    if run.recommendation is not None:
        low, high = (short_number(end) for end in run.recommendation.interval)
        where = f"trial {run.recommendation.trial.number}, between {low} and {high}"
        cards.insert(0, ("expected value", short_number(run.recommendation.mean), where))
    if acting := run.variables.active:
        few = run.variables.named or len(acting) == len(run.space)
        count, of = (f"{len(acting):,}", f"of {len(run.space):,}") if few else ("all", "as far as tested")
        cards.append(("active variables", count, of))
    if context.timeline is not None:
        spent, thought = float(context.timeline.told.max()), float(context.timeline.thinking.sum())
        cards.append(("time", duration(spent), f"{duration(thought)} thinking"))
    shown = "".join(
        f'<div class="card"><div class="name">{name}</div><div class="value">{value}</div>'
        f'<div class="note">{note}</div></div>'
        for name, value, note in cards
    )
    return f'<div class="cards">{shown}</div>{_best_point(context)}', []


def _shortfall(best: Trial) -> str:
    return "breaks a constraint" if best.constraints else "constraints not measured"


def _best_point(context: ReportContext) -> str:
    run = context.run
    if run.best is None:
        return paragraph("No evaluation has succeeded yet.")
    trial, lucky, which = run.point, "", "best"
    assert trial is not None
    if run.recommendation is not None:
        take = f"Take the point of trial {trial.number}: the value expected there is {escape(str(run.recommendation))}."
        lucky, which = paragraph("The values are noisy, and the best of them is a lucky one.", take), "recommended"
    params = trial.params
    found = [name for name in run.variables.named if name in params] or list(params)
    few, begin = found[:SHOWN], "are" if len(found) <= SHOWN else "begin with"
    acting = sentence(run, run.variables.summary) if run.variables else ""
    said = paragraph(acting, f"The values of the {which} point {begin}")
    pairs = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(short_value(params[name]))}</dd></div>" for name in few)
    some = f'<dl class="values">{pairs}</dl>'
    if len(params) <= len(few):
        return lucky + said + some
    everything = table([(name, short_value(value)) for name, value in params.items()])
    return f"{lucky}{said}{some}<details><summary>all {plural(len(params), 'value')}</summary>{everything}</details>"


def convergence(context: ReportContext) -> Content:
    curve = context.curve
    if not len(curve.improved):
        return NOTHING
    last, n = int(curve.improved[-1]), len(curve.value) - 1
    changes = len(curve.improved) - 1
    said = f"The best value changed {plural(changes, 'time')}, the last time at trial {curve.trial[last]}."
    said = said if changes else f"The best value did not change after trial {curve.trial[last]}."
    since = f"The {plural(n - last, 'evaluation')} since then found nothing better." if n > last else ""
    return paragraph(said, since), [figures.convergence(curve, context.story)]


def active(context: ReportContext) -> Content:
    if not context.run.variables:
        return context.thinking
    shown = variables.active(context.run)
    if not shown.rows:
        return paragraph(sentence(context.run, shown.words)), []
    bars = (
        "Each bar is the largest change that was seen when the variable alone was changed, as a share of the range of "
    )
    bars += "all values: it changes the value by at least so much. Hover for the two trials that prove it."
    return paragraph(sentence(context.run, shown.words), bars), [figures.active(shown)]


def tree(context: ReportContext) -> Content:
    nodes = variables.tree(context.run)
    if nodes is None or len(nodes) == 1:
        return context.thinking if nodes is None else NOTHING
    said = "Each block is a group of variables. It is split into those with the better values, on the left, and others."
    how = "The stronger its colour, the higher its value. Hover for names, visits and value, and click to look closer."
    return paragraph(said, how), [figures.tree(nodes)]


def story(context: ReportContext) -> Content:
    shown = context.story
    if not shown.purpose:
        return NOTHING
    bands = [f"{band.name} ({band.first:,}–{band.last:,})" for band in shown.bands]
    sentences = [f"The search went through {escape(listed(bands, 12))}."]
    if shown.tests:
        tests = f"{plural(shown.tests, 'test')} of variables"
        sentences += [f"It made {tests}, and {shown.hits:,} of them gave a new value: something they changed acts."]
    if shown.tests > shown.hits:
        sentences += [f"The other {shown.tests - shown.hits:,} gave a known value."]
    return paragraph(*sentences), [figures.story(shown, context.run.values)]


def selection(context: ReportContext) -> Content:
    shown = curves.selection(context.run)
    if not shown.varied:
        return NOTHING
    said = "This is how often each variable was moved: the stronger the colour, the larger the share of evaluations."
    more = len(context.run.space) - len(shown.names)
    rest = f"The {plural(more, 'other variable')} moved less often." if more > 0 else ""
    return paragraph(said, rest), [figures.selection(shown)]


def slices(context: ReportContext) -> Content:
    if not context.run.variables:
        return context.thinking
    if not context.modelled:
        return paragraph(sentence(context.run, context.surface.missing)), []
    said = f"This is what the model of the method expects when one variable of the {context.which} point changes."
    how = f"The band is two deviations, and the dotted line is the {context.which} point. Dots are evaluations nearby."
    return paragraph(said, how), [figures.cut(cut) for cut in context.surface.slices()]


def contour(context: ReportContext) -> Content:
    names = context.surface.names
    if not context.modelled or len(names) < 2:
        return NOTHING if context.run.variables else context.thinking
    pairs = itertools.combinations(names[:3], 2)
    drawn = [figures.contour(context.surface.contour(*pair), minimise=context.run.sign < 0) for pair in pairs]
    said = "The same model over pairs of the variables with the largest effects: the stronger the colour, the better."
    return paragraph(said, f"The star is the {context.which} point, and the dots are evaluations nearby."), drawn


def parallel(context: ReportContext) -> Content:
    shown = variables.parallel(context.run)
    if not len(shown.place) or len(shown.names) < 2:
        return NOTHING
    best = f"The best {plural(shown.best, 'point')} are" if shown.best > 1 else "The best point is"
    said = f"{best} in colour, the very best one thick, and some others in grey."
    spread = np.ptp(shown.place[: shown.best], axis=0)
    tight = [name for name, width in zip(shown.names, spread, strict=True) if width < 0.1]
    agree = f"They agree on {names_of(tight)}." if tight and shown.best > 2 else ""
    return paragraph(said, agree), [figures.parallel(shown)]


def constraints(context: ReportContext) -> Content:
    shown = curves.constraints(context.run)
    if shown is None:
        return NOTHING
    kept, n = int(shown.feasible.sum()), len(shown.trial)
    said = f"{kept:,} of {plural(n, 'evaluation')} keep all constraints; a value above 0 breaks one."
    rows = [(name, f"{broken:,}") for name, broken in zip(shown.names, shown.broken, strict=True)]
    return paragraph(said) + table(rows, ("constraint", "broken by")), [figures.constraints(shown)]


def failures(context: ReportContext) -> Content:
    shown = curves.failures(context.run)
    if not shown.messages:
        return NOTHING
    said = f"{len(shown.trial):,} of {plural(len(context.run.told), 'evaluation')} failed."
    rows = [(message, times, last) for message, times, last in shown.messages[:SHOWN]]
    more = len(shown.messages) - SHOWN
    rest = paragraph(f"There are {plural(more, 'other message')}.") if more > 0 else ""
    how = "The search keeps away from these points."
    return paragraph(said, how) + table(rows, ("message", "times", "last")) + rest, []


def time(context: ReportContext) -> Content:
    shown = context.timeline
    if shown is None:
        return NOTHING
    evaluating, thinking = float(np.nansum(shown.evaluating)), float(shown.thinking.sum())
    share = thinking / (evaluating + thinking) if evaluating + thinking > 0 else 0.0
    said = (
        f"The run took {duration(evaluating)} of evaluating and {duration(thinking)} of thinking, {share:.0%} of both."
    )
    each = f"An evaluation took {duration(float(np.nanmedian(shown.evaluating)))} (median)." if evaluating else ""
    drawn = [figures.time_used(shown)]
    if len(shown.workers) > 1:
        each += f" There were {len(shown.workers)} workers at a time."
        drawn.append(figures.workers(shown))
    return paragraph(said, each), drawn


def settings(context: ReportContext) -> Content:
    rows = [(name, short_value(value)) for name, value in variables.settings(context.run)]
    return f"{table(rows)}<p>To repeat it:</p><pre><code>{escape(how_to_repeat(context.run))}</code></pre>", []


MAKERS: Mapping[str, tuple[str, Callable[[ReportContext], Content]]] = {
    "headline": ("Result", headline),
    "convergence": ("Convergence", convergence),
    "variables": ("Active variables", active),
    "tree": ("Tree of variables", tree),
    "story": ("Story of the search", story),
    "selection": ("Variables moved", selection),
    "slices": ("Slices of the model", slices),
    "contour": ("Contours of the model", contour),
    "parallel": ("The best points", parallel),
    "constraints": ("Constraints", constraints),
    "failures": ("Failures", failures),
    "time": ("Time", time),
    "settings": ("Settings", settings),
}


def how_to_repeat(run: RunData) -> str:
    """The command of a benchmark problem, which a study has noted, or lines of Python."""
    return _command(run) if run.problem else _python(run)


def _command(run: RunData) -> str:
    about, note = run.about, run.command
    words = ["mctsvs", "bench", "run", run.problem, "--method", str(about.get("method", ""))]
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
    budget = about.get("budget") or sum(trial.counts for trial in run.told)
    options = "".join(f", {name}={value!r}" for name, value in dict(about.get("options") or {}).items())
    return (
        "from mctsvs import Study\n\n"
        f'study = Study("again.db", space, direction="{run.direction}", method="{about.get("method", "auto")}", '
        f"seed={about.get('seed', 0)}{options})\n"
        f"study.optimize(f, budget={budget})  # space and f: your variables and your function"
    )
