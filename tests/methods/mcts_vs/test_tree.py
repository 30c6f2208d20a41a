"""The tree, with the worked example of the paper's Appendix A."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mctsvs.methods.mcts_vs.tree import Node, Tree, variant
from mctsvs.testing import through_plain_data

BEFORE = np.array([8.5, 8, 5, 7, 3, 3, 7, 10.7, 4.5])
AFTER = np.array([9, 8.5, 5, 11, 3, 3, 11, 11.2, 4.5])


def variables(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Positions of x_1, x_2, ... as the paper counts them."""
    return np.array(numbers, dtype=np.intp) - 1


def test_appendix_a() -> None:
    tree = Tree.new(BEFORE)
    a = tree.root
    assert a.value == pytest.approx(6.3)
    tree.expand(a, BEFORE)
    tree.back_propagate([a], BEFORE)
    assert a.children is not None
    b, c = a.children
    assert b.variables.tolist() == variables(1, 2, 4, 7, 8).tolist()
    assert c.variables.tolist() == variables(3, 5, 6, 9).tolist()
    assert b.value == pytest.approx(8.24)
    assert c.value == pytest.approx(3.875)
    assert (a.visits, b.visits, c.visits) == (1, 0, 0)
    assert tree.ucb(a, b, 0.1) == tree.ucb(a, c, 0.1) == np.inf

    assert [0] in (tree.select(0.1, np.random.default_rng(seed)) for seed in range(50))
    path = tree.path([0])
    assert path == [a, b]
    tree.expand(b, AFTER)
    tree.back_propagate(path, AFTER)
    assert b.children is not None
    d, e = b.children
    assert d.variables.tolist() == variables(4, 7, 8).tolist()
    assert e.variables.tolist() == variables(1, 2).tolist()
    assert a.value == pytest.approx(7.356, abs=5e-4)
    assert b.value == pytest.approx(10.14)
    assert d.value == pytest.approx(11.067, abs=5e-4)
    assert e.value == pytest.approx(8.75)
    assert (a.visits, b.visits, d.visits, e.visits) == (2, 1, 0, 0)


def test_unvisited_children_are_chosen_at_random() -> None:
    tree = Tree.new(BEFORE)
    tree.expand(tree.root, BEFORE)
    rights = sum(tree.select(0.1, np.random.default_rng(seed)) == [1] for seed in range(400))
    # Binomial(400, 1/2): outside 140..260 with probability below 2e-9
    assert 140 <= rights <= 260
    assert tree.bad == rights


def test_ucb_is_equation_1() -> None:
    tree = Tree.new(BEFORE)
    parent, child = Node(np.arange(9), 6.3, 8), Node(np.arange(5), 8.24, 3)
    assert tree.ucb(parent, child, 0.5) == pytest.approx(8.24 + 2 * 0.5 * np.sqrt(2 * np.log(8) / 3))
    program = Tree.new(BEFORE, variant("authors-program"))
    assert program.ucb(parent, child, 0.5) == pytest.approx(8.24 + 2 * 0.5 * np.sqrt(2 * np.sqrt(8) / 3))
    assert program.root.value == 10.7


def test_equal_scores_cannot_be_split() -> None:
    score = np.full(7, 0.1) * 3  # its mean is not exactly one of its entries
    tree = Tree.new(score)
    tree.expand(tree.root, score)
    assert tree.root.is_leaf


@given(st.integers(2, 30), st.integers(0, 10**6), st.integers(1, 25))
def test_children_partition_their_parent_and_state_restores(n: int, seed: int, steps: int) -> None:
    rng = np.random.default_rng(seed)
    tree = Tree.new(rng.random(n))
    for _ in range(steps):
        score = rng.random(n)
        path = tree.path(tree.select(0.1, rng))
        if len(path[-1].variables) > 3:
            tree.expand(path[-1], score)
        tree.back_propagate(path, score)
    for _, node in tree.root.walk():
        if node.children is not None:
            left, right = node.children
            assert sorted([*left.variables, *right.variables]) == sorted(node.variables)
            assert node.visits >= left.visits + right.visits
    assert tree.root.visits == steps
    again = Tree.from_state(through_plain_data(tree.state()))
    assert str(again.root) == str(tree.root)
    assert again.bad == tree.bad
    one, two = np.random.default_rng(1), np.random.default_rng(1)
    turns = tree.select(0.1, one)
    assert again.select(0.1, two) == turns
    for a, b in zip(tree.path(turns), again.path(turns), strict=True):
        assert a.variables.tolist() == b.variables.tolist()
        assert (a.value, a.visits) == (b.value, b.visits)


def test_a_tree_prints_the_names_of_its_variables() -> None:
    tree = Tree.new(np.array([1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    tree.expand(tree.root, np.array([1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    assert str(tree.root).splitlines()[1] == "  2 variables, value 1, visits 0"
    named = tree.root.named(["rate", "width", "kind", "a", "b", "c", "d", "e", "f"])
    assert str(named).splitlines() == [
        "9 variables (rate, width, kind, a, b, c and 3 others), value 0.2222, visits 0",
        "  2 variables (rate and kind), value 1, visits 0",
        "  7 variables (width, a, b, c, d, e and 1 other), value 0, visits 0",
    ]
    assert not tree.root.names, "the tree itself stays as it is"
