"""MCTS-VS: the tree that chooses variables (Algorithm 1; line numbers in the margin are the paper's)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mctsvs.methods.history import History, InformationSet
from mctsvs.methods.mcts_vs.tree import VARIANTS, Node, Tree, variant
from mctsvs.utils.options import Options, option
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Indices

EXPLORATION = 0.2  # default C_p in standard deviations of the values seen so far


@dataclass(frozen=True)
class TreeOptions(Options):
    """Letter in the paper, its default, meaning.

    subset_batches  N_v, 2: pairs of a random subset and its complement in each iteration
    samples         N_s, 3: points for each subset, in the initial design too
    bad_limit       N_bad, 5: visits of right children after which the tree is made anew
    split_size      N_split, 3: a leaf with more variables than this is split
    cp              C_p: exploration; default 0.2 standard deviations of the values seen so far, so that
                    the scale of the objective does not matter. The paper sets 0.1 (Hartmann), 10 (Levy)...
    variant         "text", "authors-program" or "authors-recall" (see `mctsvs.methods.mcts_vs.tree.Variant`)
    """

    subset_batches: int = option(2, least=1)
    samples: int = option(3, least=1)
    bad_limit: int = option(5, least=0)
    split_size: int = option(3, least=1)
    cp: float | None = option(None, least=0)
    variant: str = option("text", among=VARIANTS)


class MCTS(Saved):
    """Selects variables by Monte Carlo tree search over groups of variables."""

    options_type: ClassVar[type[TreeOptions]] = TreeOptions
    saved = ("iteration", "information", "search", "turns", "subsets", "moved")
    iteration: int
    information: InformationSet
    search: Tree | None
    turns: list[int] | None  # from the root to the selected leaf X, 1 for each right child
    subsets: list[Indices]  # of this iteration, still to be moved
    moved: int  # how many this iteration has in all

    def __init__(self, n_variables: int, options: TreeOptions) -> None:
        self.options, self.variant = options, variant(options.variant)
        self.information = InformationSet(n_variables, self.variant)
        self.iteration, self.search, self.turns, self.subsets, self.moved = 0, None, None, [], 0

    def initial(self, points: int | None, rng: np.random.Generator) -> list[tuple[Indices, int]]:
        """N_v random subsets of all variables, each with its complement (line 1), N_s points each."""
        everything = np.arange(len(self.information.total))
        subsets = [part for _ in range(self.options.subset_batches) for part in random_halves(everything, rng)]
        each = self.options.samples if points is None else max(1, points // len(subsets))
        return [(subset, each) for subset in subsets]

    def next(self, history: History, owner: Indices, rng: np.random.Generator) -> Indices:
        """The next subset of this iteration; a new iteration when all have been moved."""
        if not self.subsets:
            if self.turns is not None:
                self._finish_iteration(self.turns)
            self._begin_iteration(rng)
        return self.subsets.pop(0)

    def _begin_iteration(self, rng: np.random.Generator) -> None:
        self.iteration += 1  # 6
        if self.search is None or self._is_bad(self.search):  # 4, 7
            self.search = Tree.new(self.information.score, self.variant)  # 8
        cp = EXPLORATION * self.information.deviation if self.options.cp is None else self.options.cp
        self.turns = self.search.select(cp, rng)  # 10, 12
        leaf = self.search.path(self.turns)[-1].variables  # 11: A_X
        for _ in range(self.options.subset_batches):  # 13
            self.subsets += random_halves(leaf, rng)  # 14, 22: M and its complement
        if self.variant.visit_by_subset:
            self.subsets = list({subset.tobytes(): subset for subset in self.subsets}.values())
        self.moved = len(self.subsets)

    # lines 15 to 21 (model, new points, fill-in, evaluation) are the engine's, once for each subset

    def observe(self, variables: Indices, y: float) -> None:
        self.information.add(variables, y)  # 19

    def _finish_iteration(self, turns: list[int]) -> None:
        assert self.search is not None
        score, path = self.information.score, self.search.path(turns)  # 24
        self.search.expand(path[-1], score, self.options.split_size)  # 25, 26
        self.search.back_propagate(path, score, self.moved if self.variant.visit_by_subset else 1)  # 28

    def _is_bad(self, tree: Tree) -> bool:
        """n_bad > N_bad (line 7)."""
        limit = self.options.bad_limit
        return tree.bad >= limit if self.variant.restart_at_limit else tree.bad > limit

    @property
    def tree(self) -> Node | None:
        return None if self.search is None else self.search.root


def random_halves(variables: Indices, rng: np.random.Generator) -> list[Indices]:
    """A subset drawn uniformly from all subsets, and its complement; neither is empty, unless there is one variable."""
    if len(variables) == 1:
        return [variables]
    while True:
        chosen = rng.random(len(variables)) < 0.5
        if chosen.any() and not chosen.all():
            return [variables[chosen], variables[~chosen]]
