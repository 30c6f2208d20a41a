"""Algorithm 1, seen from outside: which subsets come, when the tree is split and made anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mctsvs.methods.history import History
from mctsvs.methods.mcts_vs.selector import MCTS, TreeOptions, random_halves
from mctsvs.methods.mcts_vs.tree import Tree
from mctsvs.methods.mcts_vs.tree import variant as variants
from mctsvs.utils.validation import InputError

# the tree learns from what it is told in `observe`; it looks neither at points nor at coordinates
NOTHING, EVERY = History(0), np.arange(0)


def test_initial_design_is_subsets_and_their_complements() -> None:
    selector = MCTS(50, TreeOptions(subset_batches=3, samples=4))
    design = selector.initial(None, np.random.default_rng(0))
    assert [n for _, n in design] == [4] * 6
    for (subset, _), (complement, _) in zip(design[::2], design[1::2], strict=True):
        assert sorted([*subset, *complement]) == list(range(50))


def test_each_iteration_moves_subsets_and_complements_of_one_leaf() -> None:
    rng = np.random.default_rng(3)
    selector = MCTS(40, TreeOptions())
    for subset, n in selector.initial(None, rng):
        for _ in range(n):
            selector.observe(subset, float(rng.random()))
    for iteration in range(1, 30):
        subsets = []
        for _ in range(2 * selector.options.subset_batches):
            subsets.append(selector.next(NOTHING, EVERY, rng))
            assert selector.iteration == iteration
            selector.observe(subsets[-1], float(rng.random()))
        assert selector.search is not None
        assert selector.turns is not None
        chosen = selector.search.path(selector.turns)[-1]
        leaf = sorted(chosen.variables)
        assert sorted(np.concatenate(subsets[:2])) == leaf == sorted(np.concatenate(subsets[2:]))
        assert chosen.is_leaf
        if len(leaf) == 1:
            break


def test_leaves_are_split_only_above_the_split_size() -> None:
    rng = np.random.default_rng(0)
    selector = MCTS(30, TreeOptions(split_size=10, bad_limit=10**4))
    for subset, _ in selector.initial(None, rng):
        selector.observe(subset, float(rng.random()))
    for _ in range(200):
        selector.observe(selector.next(NOTHING, EVERY, rng), float(rng.random()))
    assert selector.tree is not None
    inner = [node for _, node in selector.tree.walk() if not node.is_leaf]
    assert inner
    assert all(len(node.variables) > 10 for node in inner)


@pytest.mark.parametrize(("variant", "longest"), [("text", 6), ("authors-program", 5)])
def test_a_bad_tree_is_made_anew(variant: str, longest: int) -> None:
    rng = np.random.default_rng(0)
    selector = MCTS(64, TreeOptions(variant=variant, cp=1e9))  # explores: many right turns
    for subset, _ in selector.initial(None, rng):
        selector.observe(subset, float(rng.random()))
    restarts, bad = 0, []
    for _ in range(1000):
        before = selector.search
        selector.observe(selector.next(NOTHING, EVERY, rng), float(rng.random()))
        assert selector.search is not None
        restarts += before is not None and selector.search is not before
        if before is not None and selector.search is not before:
            bad.append(before.bad)
    assert restarts > 10
    assert min(bad) == longest  # n_bad > 5 in the text, >= 5 in the authors' program


def test_default_exploration_follows_the_spread_of_values() -> None:
    rng = np.random.default_rng(0)
    selector = MCTS(20, TreeOptions())
    for subset, n in selector.initial(None, rng):
        for _ in range(n):
            selector.observe(subset, float(rng.normal(scale=50)))
    assert 5 < 0.2 * selector.information.deviation < 20


def test_random_halves() -> None:
    rng = np.random.default_rng(0)
    assert random_halves(np.array([4]), rng) == [np.array([4])]
    sizes = [len(random_halves(np.arange(100), rng)[0]) for _ in range(200)]
    # mean of 200 Binomial(100, 1/2) sizes: sd 0.35, so 5 sigma is a false alarm in 6e-7
    assert abs(np.mean(sizes) - 50) < 1.8
    assert min(len(part) for _ in range(50) for part in random_halves(np.arange(2), rng)) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"subset_batches": 0}, "subset_batches=0"),
        ({"split_size": 0}, "split_size=0"),
        ({"bad_limit": -1}, "bad_limit=-1"),
        ({"cp": float("nan")}, "cp=nan"),
        ({"variant": "paper"}, "'paper'"),
    ],
)
def test_bad_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        TreeOptions(**options)


def _told(selector: MCTS, rng: np.random.Generator, n: int = 1) -> None:
    """Values that make variable 0 the best."""
    for _ in range(n):
        subset = selector.next(NOTHING, EVERY, rng)
        selector.observe(subset, float(0 in subset))


def test_the_authors_program_counts_a_visit_for_each_distinct_subset() -> None:
    rng = np.random.default_rng(0)
    visits = {}
    for name in ("text", "authors-program"):
        selector = MCTS(40, TreeOptions(variant=name))
        _told(selector, rng, 5)  # the fifth subset begins the second iteration, which ends the first
        assert selector.tree is not None
        visits[name] = selector.tree.visits
    assert visits == {"text": 1, "authors-program": 4}


def test_the_authors_program_moves_equal_subsets_once() -> None:
    for name, expected in (("text", 4), ("authors-program", 2)):
        selector, rng = MCTS(2, TreeOptions(variant=name)), np.random.default_rng(0)
        _told(selector, rng)
        assert len(selector.subsets) + 1 == expected


@pytest.mark.parametrize(
    ("variant", "score", "left"),
    [
        ("text", [1.0, 0.5, 0.0], None),  # three variables are not more than N_split
        ("authors-program", [1.0, 0.5, 0.0], None),  # children of two and one: both are smaller than N_split
        ("authors-program", [1.0, 0.5, 0.5, 0.0], [0, 1, 2]),  # the mean itself counts as good
        ("text", [1.0, 0.5, 0.5, 0.0], [0]),
        ("authors-recall", [9.0, 1.0, 1.0, 1.0, 0.0, 0.0], [0, 1, 2, 3]),  # the median is 1, the mean 2
        ("authors-program", [9.0, 1.0, 1.0, 1.0, 0.0, 0.0], [0]),
    ],
)
def test_where_a_leaf_is_split(variant: str, score: list[float], left: list[int] | None) -> None:
    tree = Tree.new(np.array(score), variants(variant))
    tree.expand(tree.root, np.array(score), 3)
    children = tree.root.children
    assert (None if children is None else children[0].variables.tolist()) == left
