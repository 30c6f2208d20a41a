"""Categories are decided by the acquisition function, and known points are left alone."""

from __future__ import annotations

from itertools import product

import numpy as np

from mctsvs.gp.optimize_acqf_mixed import Lattice, blocks_of, other_category
from mctsvs.methods.rivals.gtbo import decide_categories
from mctsvs.utils.validation import Array

OWNER = np.array([0, 1, 1, 1, 2, 3, 3])
BLOCKS = blocks_of(OWNER, np.arange(7))


class Linear:
    """A surface with its optimum at a corner."""

    def __init__(self, slope: Array) -> None:
        self.slope = slope

    def __call__(self, Z: Array) -> Array:
        return np.asarray(Z @ self.slope)

    def value_and_gradient(self, Z: Array) -> tuple[Array, Array]:
        return self(Z), np.repeat(self.slope[None], len(Z), axis=0)


SURFACE = Linear(np.array([1.0, 0.1, 0.5, 0.3, -1.0, 0.2, 0.4]))


def test_blocks_are_the_variables_with_several_coordinates() -> None:
    assert [block.tolist() for block in BLOCKS] == [[1, 2, 3], [5, 6]]
    assert [block.tolist() for block in blocks_of(OWNER, np.array([4, 5, 6]))] == [[1, 2]]
    assert blocks_of(np.arange(5), np.arange(5)) == []


def test_the_best_corner_is_found_and_then_the_next_best() -> None:
    rng = np.random.default_rng(0)
    known = np.empty((0, 7))
    values = []
    for _ in range(6):  # as many as there are combinations
        x = decide_categories(SURFACE, np.full(7, 0.5), Lattice.of_categories(OWNER), known, rng)
        assert set(x[1:4]) == set(x[5:7]) == {0.0, 1.0}
        assert x[1:4].sum() == x[5:7].sum() == 1.0
        assert np.allclose(x[[0, 4]], [1.0, 0.0])  # the others follow
        values.append(float(SURFACE(x[None])[0]))
        corner = x.copy()
        corner[[0, 4]] = 0.5  # before the others followed
        known = np.concatenate([known, corner[None]])
    every = [1.0 + a + b for a, b in product((0.1, 0.5, 0.3), (0.2, 0.4))]
    assert np.allclose(values[0], max(every))
    assert np.allclose(sorted(values), sorted(every))


def test_when_everything_is_known_the_best_is_repeated() -> None:
    lattice = Lattice.of_categories(np.array([0, 0]))
    surface = Linear(np.array([0.0, 1.0]))
    x = decide_categories(surface, np.full(2, 0.5), lattice, np.eye(2), np.random.default_rng(0))
    assert np.array_equal(x, [0.0, 1.0])


def test_another_category_is_another() -> None:
    rng = np.random.default_rng(0)
    x = np.array([0.0, 1.0, 0.0])
    codes = [other_category(x, np.arange(3), rng) for _ in range(50)]
    assert {int(code.argmax()) for code in codes} == {0, 2}
    assert all(code.sum() == 1.0 for code in codes)
