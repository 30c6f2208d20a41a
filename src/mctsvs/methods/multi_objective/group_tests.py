"""Group tests: which variables change any objective or any measured constraint, where these are few.

Four probes change a twentieth of the variables each, of a good point. If each of them changes something, all variables
are taken to act. Otherwise groups are halved until each variable is found or rejected: a group whose change leaves all
outputs as they were is rejected as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Indices

PROBES, SHARE = 4, 20  # groups asked about first, each of so small a share of the variables
FEWEST = 40  # variables that are worth tests


@dataclass(frozen=True, eq=False)
class Group:
    """Variables to be asked about."""

    variables: Indices
    acts: bool  # whether one of them is known to act


@dataclass(frozen=True, eq=False)
class Question:
    """A test under way: whether a change of these variables changes anything."""

    variables: Indices
    others: Indices | None = None  # the other half of a group that acts
    probe: bool = False


@dataclass(eq=False)
class GroupTests(Saved):
    """The tests of one run, around the point of one row of the history.

    >>> tests = GroupTests.begin(order, row)
    >>> question = tests.next()             # None: nothing can be asked until an answer comes
    >>> tests.answer(question, acts=True)
    >>> tests.ended, tests.kept
    """

    saved: ClassVar[tuple[str, ...]] = (
        "row", "rest", "groups", "asked", "answered", "probes", "hits", "active", "rejected", "dense", "stopped"
    )  # fmt: skip

    row: int
    rest: Indices  # variables in no probe
    groups: list[Group]  # the last one is next
    asked: int = 0
    answered: int = 0
    probes: int = 0  # answered
    hits: int = 0  # of them, that changed something
    active: list[int] = field(default_factory=list)
    rejected: list[int] = field(default_factory=list)
    dense: bool = False  # whether all variables are taken to act
    stopped: bool = False

    @classmethod
    def begin(cls, order: Indices, row: int) -> GroupTests:
        """Of all variables, in the order in which they are asked about."""
        size = max(1, len(order) // SHARE)
        probes = [Group(order[i * size : (i + 1) * size], False) for i in range(PROBES)]
        return cls(row, order[PROBES * size :], probes[::-1])

    @property
    def ended(self) -> bool:
        return self.dense or self.stopped or (self.answered == self.asked >= PROBES and not self.groups)

    def next(self) -> Question | None:
        """The next question; None where there is none, or none before an answer."""
        probing = self.asked < PROBES
        if self.ended or not self.groups or (not probing and self.probes < PROBES):
            return None
        group = self.groups.pop()
        self.asked += 1
        if not group.acts:
            return Question(group.variables, probe=probing)
        half = len(group.variables) // 2
        return Question(group.variables[:half], others=group.variables[half:])

    def answer(self, question: Question, *, acts: bool) -> None:
        self.answered += 1
        if self.dense or self.stopped:
            return
        if question.probe:
            self.probes, self.hits = self.probes + 1, self.hits + acts
        if question.others is not None:  # where the first half acts, nothing is known of the second
            self._settle(Group(question.others, not acts), first=False)
        self._settle(Group(question.variables, acts), first=question.probe, rejected=not acts)
        if question.probe and self.probes == PROBES:
            self.dense = self.hits == PROBES
            pieces = max(1, round(len(self.rest) / (2 * len(question.variables))))
            self.groups = [Group(piece, False) for piece in np.array_split(self.rest, pieces)] + self.groups

    def _settle(self, group: Group, *, first: bool, rejected: bool = False) -> None:
        """Reject it, take its only variable for found, or ask about it: as the next one, or behind the probes."""
        if rejected:
            self.rejected += group.variables.tolist()
        elif group.acts and len(group.variables) == 1:
            self.active.append(int(group.variables[0]))
        else:
            self.groups.insert(0 if first else len(self.groups), group)

    def stop(self) -> None:
        """Ask no further: what is neither found nor rejected may act."""
        self.stopped = True

    def kept(self, n_variables: int) -> Indices:
        """Variables that act, or may act."""
        kept = np.setdiff1d(np.arange(n_variables), np.array(self.rejected, dtype=np.intp))
        return np.arange(n_variables) if self.dense or not len(kept) else kept
