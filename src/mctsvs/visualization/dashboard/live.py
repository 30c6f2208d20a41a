"""One study as a page that changes: news is read when a reader asks, and the model is fitted in a thread beside it."""

from __future__ import annotations

import hashlib
import threading
import time
import warnings
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mctsvs.methods.mcts_vs.tree import Node
from mctsvs.optimizer.active_variables import VariableStatuses
from mctsvs.optimizer.trial import Recommendation
from mctsvs.study import Study
from mctsvs.study.reader import StudyFollower
from mctsvs.utils.validation import InputError
from mctsvs.visualization.report import subtitle
from mctsvs.visualization.report.page import Live, as_json, figures_of, navigation, page, section_html
from mctsvs.visualization.report.sections import Section, sections
from mctsvs.visualization.run_data import Expected, RunData, advice_of, expected_of

LEAST_PAUSE = 3.0  # seconds between thoughts, and
PATIENCE = 6.0  # times what the last one took
REMEMBERED = 64  # versions whose differences can be told


@dataclass(frozen=True)
class BackgroundModel:
    """What only the method itself can tell: computed beside, a little behind the evaluations."""

    variables: VariableStatuses = field(default_factory=VariableStatuses)
    tree: Node | None = None
    doing: str = ""
    advice: Recommendation | None = None
    expected: Expected | None = None


class LiveStudy:
    """The page of one study file; several threads may ask it."""

    def __init__(self, path: Path) -> None:
        self.path, self.followed = path, StudyFollower(path)
        self.thoughts, self.thought = BackgroundModel(), 0
        self.parts: list[Section] = []
        self.version = ""
        self._marks: OrderedDict[str, dict[str, str]] = OrderedDict()  # version -> checksum of each section
        self._shown: tuple[int, int] = (-1, -1)  # events and thoughts in the sections
        self._lock, self._thinker = threading.Lock(), threading.Thread()
        self._next_thought, self._thought_of = 0.0, -1

    def page(self, news: str, plotly: str, home: str = "") -> str:
        """The whole page, as it is now; thinking waits until it has been delivered."""
        with self._lock:
            self._update()
            drawn = {name: one for part in self.parts for name, one in figures_of("", part).items()}
            body = navigation("", self.parts) + "".join(section_html("", part) for part in self.parts)
            live = Live(plotly, news, self.version, self._state())
            back = f'; <a href="{home}">all studies</a>' if home else ""
            return page(self.path.stem, subtitle(self._run()) + back, body, drawn, live)

    def news(self, have: str) -> str:
        """As JSON: the sections that differ from the version that the page has."""
        with self._lock:
            self._update()
            self._think()
            before, now = self._marks.get(have, {}), self._marks[self.version]
            changed = {
                part.name: {"text": part.text, "figures": figures_of("", part)}
                for part in self.parts
                if before.get(part.name) != now[part.name]
            }
            answer = {"version": self.version, "state": self._state(), "running": self.followed.running}
            return as_json({**answer, "sections": changed})

    def _update(self) -> None:
        self.followed.look()
        assert self.followed.journal is not None
        state = (self.followed.journal.length, self.thought)
        if state == self._shown:
            return
        self.parts, self._shown = sections(self._run()), state
        marks = {part.name: _checksum([part.text, part.figures]) for part in self.parts}
        self.version = _checksum(marks)
        self._marks[self.version] = marks
        while len(self._marks) > REMEMBERED:
            self._marks.popitem(last=False)

    def _run(self) -> RunData:
        contents, thoughts = self.followed.contents, self.thoughts
        assert contents is not None
        about = {name: contents.identity[name] for name in ("method", "seed", "options")}
        about |= {"path": self.path, "user_attrs": self._user_attrs()}
        if self.thought == 0:
            about["thinking"] = True
        if self.followed.budget is not None:
            about["budget"] = self.followed.budget
        direction = str(contents.identity["direction"])
        trials = list(contents.trials)
        run = RunData(self.path.stem, contents.space, direction, trials, about)
        run.explain, run.groups, run.expected = (lambda: thoughts.variables), (lambda: thoughts.tree), thoughts.expected
        run.advice, run.chosen = (lambda: thoughts.advice), (lambda: contents.best)
        return run

    def _user_attrs(self) -> dict[str, Any]:
        return {} if self.followed.journal is None else self.followed.journal.meta()

    def _state(self) -> str:
        contents = self.followed.contents
        assert contents is not None
        done, budget = sum(contents.trials[number].counts for number in contents.told), self.followed.budget
        count = f"{done:,} of {budget:,} evaluations" if budget else f"{done:,} evaluations"
        if not self.followed.running:
            return f"not running, {count}" + (
                "" if self._is_up_to_date() else "; the model is being brought up to date"
            )
        return f"running, {count}" + (f"; {self.thoughts.doing}" if self.thoughts.doing else "")

    def _think(self) -> None:
        """Begin to think anew, if there is something new, nobody is at it, and the last time is long enough ago.

        When the run has ended, nothing more will come, and there is no reason to wait.
        """
        assert self.followed.journal is not None
        length, waiting = self.followed.journal.length, time.monotonic() < self._next_thought
        if length == self._thought_of or self._thinker.is_alive() or (waiting and self.followed.running):
            return
        self._thought_of = length
        self._thinker = threading.Thread(target=self._thinking, name=f"thinking of {self.path.name}", daemon=True)
        self._thinker.start()

    def _is_up_to_date(self) -> bool:
        """Whether the model has seen all events of the study."""
        assert self.followed.journal is not None
        return self._thought_of == self.followed.journal.length and not self._thinker.is_alive()

    def _thinking(self) -> None:
        begun = time.monotonic()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with Study(self.path, readonly=True) as study:
                    found, doing = study.variables(), study.optimizer.describe()
                    advice, expected = advice_of(study), expected_of(study)
                    self.thoughts = BackgroundModel(found, study.tree, doing, advice, expected)
        except InputError:  # the method is a file that only the user may name, or its library is not here
            self.thoughts = BackgroundModel()
        self.thought += 1
        now = time.monotonic()
        self._next_thought = now + max(LEAST_PAUSE, PATIENCE * (now - begun))


def _checksum(value: Any) -> str:
    return hashlib.blake2b(as_json(value).encode(), digest_size=8).hexdigest()
