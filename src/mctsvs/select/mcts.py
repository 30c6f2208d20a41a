"""MCTS-VS: the tree that chooses variables (Algorithm 1; line numbers in the margin are the paper's)."""

from __future__ import annotations

import itertools
import numbers
from typing import ClassVar

import numpy as np

from mctsvs.common import Indices, InputError, State, check_count
from mctsvs.history import History, InformationSet, check_variant
from mctsvs.tree import Node, Tree

EXPLORATION = 0.2  # default C_p in standard deviations of the values seen so far


class MCTS:
    """Selects variables by Monte Carlo tree search over groups of variables.

    Parameters (letter in the paper, its default):
        subset_batches  N_v, 2: pairs of a random subset and its complement in each iteration
        samples         N_s, 3: points for each subset, in the initial design too
        bad_limit       N_bad, 5: visits of right children after which the tree is made anew
        split_size      N_split, 3: a leaf with more variables than this is split
        cp              C_p: exploration; default 0.2 standard deviations of the values seen so far, so that
                        the scale of the objective does not matter. The paper sets 0.1 (Hartmann), 10 (Levy)...
        variant         "text" or "authors-program" (see `mctsvs.tree` and `mctsvs.history`)
    """

    options: ClassVar[tuple[str, ...]] = ("subset_batches", "samples", "bad_limit", "split_size", "cp", "variant")

    def __init__(
        self,
        n_variables: int,
        *,
        subset_batches: int = 2,
        samples: int = 3,
        bad_limit: int = 5,
        split_size: int = 3,
        cp: float | None = None,
        variant: str = "text",
    ) -> None:
        check_count("subset_batches", subset_batches)
        check_count("samples", samples)
        check_count("split_size", split_size)
        check_count("bad_limit", bad_limit, least=0)
        if cp is not None and not (isinstance(cp, numbers.Real) and not isinstance(cp, bool) and cp >= 0):
            raise InputError(f"cp={cp!r} is not an exploration constant: it must be a number, 0 or more")
        self.subset_batches, self.samples = subset_batches, samples
        self.bad_limit, self.split_size, self.cp = bad_limit, split_size, cp
        self.variant = check_variant(variant)
        self.information = InformationSet(n_variables, variant)
        self.iteration = 0
        self.search: Tree | None = None
        self.path: list[Node] = []  # root to the selected leaf X
        self.subsets: list[Indices] = []  # of this iteration, still to be moved

    def initial(self, points: int | None, rng: np.random.Generator) -> list[tuple[Indices, int]]:
        """N_v random subsets of all variables, each with its complement (line 1), N_s points each."""
        everything = np.arange(len(self.information.total))
        subsets = [part for _ in range(self.subset_batches) for part in random_halves(everything, rng)]
        each = self.samples if points is None else max(1, points // len(subsets))
        return [(subset, each) for subset in subsets]

    def next(self, history: History, owner: Indices, rng: np.random.Generator) -> Indices:
        """The next subset of this iteration; a new iteration when all have been moved."""
        if not self.subsets:
            if self.path:
                self._finish_iteration()
            self._begin_iteration(rng)
        return self.subsets.pop(0)

    def _begin_iteration(self, rng: np.random.Generator) -> None:
        self.iteration += 1  # 6
        if self.search is None or self._is_bad(self.search):  # 4, 7
            self.search = Tree.new(self.information.score, self.variant)  # 8
        cp = EXPLORATION * self.information.spread if self.cp is None else self.cp
        self.path = self.search.select(cp, rng)  # 10, 12
        leaf = self.path[-1].variables  # 11: A_X
        for _ in range(self.subset_batches):  # 13
            self.subsets += random_halves(leaf, rng)  # 14, 22: M and its complement

    # lines 15 to 21 (model, new points, fill-in, evaluation) are the engine's, once for each subset

    def observe(self, variables: Indices, y: float) -> None:
        self.information.add(variables, y)  # 19

    def _finish_iteration(self) -> None:
        assert self.search is not None
        score, leaf = self.information.score, self.path[-1]  # 24
        if len(leaf.variables) > self.split_size:  # 25
            self.search.expand(leaf, score)  # 26
        self.search.back_propagate(self.path, score)  # 28

    def _is_bad(self, tree: Tree) -> bool:
        """n_bad > N_bad (line 7); the authors' program starts anew one visit earlier."""
        return tree.bad >= self.bad_limit if self.variant == "authors-program" else tree.bad > self.bad_limit

    @property
    def tree(self) -> Node | None:
        return None if self.search is None else self.search.root

    def state(self) -> State:
        turns = [int(a.children is not None and a.children[1] is b) for a, b in itertools.pairwise(self.path)]
        return {
            "iteration": self.iteration,
            "information": self.information.state(),
            "tree": None if self.search is None else self.search.state(),
            "path": turns if self.path else None,
            "subsets": [subset.copy() for subset in self.subsets],
        }

    def restore(self, state: State) -> None:
        self.iteration = state["iteration"]
        self.information = InformationSet.restore(state["information"])
        self.search = None if state["tree"] is None else Tree.restore(state["tree"])
        self.path = []
        if self.search is not None and state["path"] is not None:
            self.path = [self.search.root]
            for turn in state["path"]:
                children = self.path[-1].children
                assert children is not None
                self.path.append(children[turn])
        self.subsets = [np.asarray(subset) for subset in state["subsets"]]


def random_halves(variables: Indices, rng: np.random.Generator) -> list[Indices]:
    """A subset drawn uniformly from all subsets, and its complement; neither is empty, unless there is one variable."""
    if len(variables) == 1:
        return [variables]
    while True:
        chosen = rng.random(len(variables)) < 0.5
        if chosen.any() and not chosen.all():
            return [variables[chosen], variables[~chosen]]
