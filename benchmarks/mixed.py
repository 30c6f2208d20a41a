"""A problem of 100 variables of every kind, of which eight matter; and the same with half of the variables conditional.

30 real variables, 20 on a logarithmic scale, 30 whole ones, 20 categories of 2 to 8 choices; two of each kind matter.
With d the distances of those eight from their best values (in widths of the range; of a category a number for each
choice, 0 for the best), the value is d.A d and a ripple: A positive definite, with interplay of all eight; 0 at best.
Where half are conditional, four of the eight and 46 others exist only with some values of six other variables, two of
which matter; a variable that matters and does not exist counts as half a width off.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mctsvs.bench.problems import Problem
from mctsvs.space import Categorical, Float, Integer, Space
from mctsvs.utils.validation import Array, Indices

KINDS = {"float": 30, "log": 20, "integer": 30, "category": 20}
EACH = 2  # of a kind matter
ABSENT = 0.5
PARENTS, OTHERS = 6, 46
RIPPLE = 0.05


@dataclass(frozen=True)
class Value:
    """The objective, as a function of x (V,) in natural units with the number of each choice."""

    space: Space
    active: Indices  # (8,)
    best: Array  # (8,) their best values, natural units
    matrix: Array  # (8, 8)
    effects: dict[int, Array]  # of the choices of a category

    def __call__(self, x: Array) -> float:
        u = self.space.encode(x)
        here, at = self.space.active(u), self.space.encode(self.optimum(x))
        d = np.empty(len(self.active))
        for i, v in enumerate(self.active):
            first = self.space.offsets[v]
            d[i] = self.effects[v][int(x[v])] if v in self.effects else u[first] - at[first]
        d = np.where(here[self.active], d, ABSENT)
        return float(d @ self.matrix @ d + RIPPLE * (1.0 - np.cos(4.0 * np.pi * d)).sum())

    def optimum(self, x: Array) -> Array:
        """x with the best values of those that matter."""
        best = x.copy()
        best[self.active] = self.best
        return best


@dataclass(frozen=True, eq=False)
class Mixed(Problem):
    """Its space has every kind of variable."""

    variables: dict[str, Any] = field(kw_only=True)

    @property
    def space(self) -> Any:
        return self.variables


def make(seed: int, *, conditional: bool = False) -> Mixed:
    """Which variables matter, their best values and the conditions follow from the seed."""
    rng = np.random.default_rng([seed, 17])
    variables = _variables(rng)
    kinds = np.repeat(np.arange(len(KINDS)), list(KINDS.values()))
    active = np.concatenate(
        [rng.choice(np.flatnonzero(kinds == kind), EACH, replace=False) for kind in range(len(KINDS))]
    )
    plain = Space.of(variables)
    best = plain.decode(0.1 + 0.8 * rng.random(plain.n_coordinates))
    effects = {int(v): _effects(int(plain.sizes[v]), int(best[v]), rng) for v in active if kinds[v] == 3}
    basis = rng.standard_normal((len(active), 2 * len(active)))
    matrix = basis @ basis.T / (2 * len(active))
    if conditional:
        variables = _conditions(variables, plain, active, best, rng)
    space = Space.of(variables)
    name = "Conditional100" if conditional else "Mixed100"
    value = Value(space, active, best[active], matrix, effects)
    return Mixed(
        name,
        "every kind of variable",
        plain.bounds,
        value,
        "minimize",
        0.0,
        variables=variables,
        active=np.sort(active),
    )


def _variables(rng: np.random.Generator) -> dict[str, Any]:
    made: list[Any] = [Float(-5.0, 5.0) for _ in range(KINDS["float"])]
    made += [Float(1e-5, 1.0, log=True) for _ in range(KINDS["log"])]
    made += [Integer(0, int(rng.integers(2, 33))) for _ in range(KINDS["integer"])]
    made += [Categorical([f"c{i}" for i in range(int(rng.integers(2, 9)))]) for _ in range(KINDS["category"])]
    return {f"v{i:03d}": variable for i, variable in enumerate(made)}


def _effects(choices: int, best: int, rng: np.random.Generator) -> Array:
    effects: Array = rng.uniform(0.2, 0.8, choices) * rng.choice([-1.0, 1.0], choices)
    effects[best] = 0.0
    return effects


def _conditions(
    variables: dict[str, Any], space: Space, active: Indices, best: Array, rng: np.random.Generator
) -> dict[str, Any]:
    """Parents are whole numbers and categories, two of them among those that matter; their best values open."""
    names = list(variables)
    discrete = np.flatnonzero(np.isfinite(space.sizes))
    own = [int(v) for v in active[[5, 7]]]
    others = rng.choice(np.setdiff1d(discrete, active), PARENTS - len(own), replace=False)
    parents = np.array([*own, *others])
    inert = np.setdiff1d(np.arange(len(names)), np.concatenate([active, parents]))
    children = np.concatenate([active[[0, 2, 4, 6]], rng.choice(inert, OTHERS, replace=False)])
    made = dict(variables)
    for i, v in enumerate(children):
        parent = int(parents[i % PARENTS])
        values = space.values(parent)
        opens = {float(best[parent]), *rng.choice(values, max(1, len(values) // 2), replace=False).tolist()}
        chosen = variables[names[parent]]
        when = [chosen.choices[int(k)] if isinstance(chosen, Categorical) else int(k) for k in sorted(opens)]
        made[names[v]] = replace(variables[names[v]], when={names[parent]: when})
    return made
