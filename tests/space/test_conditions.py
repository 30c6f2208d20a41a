"""Ordinals, booleans, fixed variables, defaults and conditions: what they mean, and the sentences for bad ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mctsvs import Boolean, Categorical, Fixed, Float, InputError, Integer, Optimizer, Ordinal, Space, Study
from mctsvs.space.deduplicate import SpaceExhausted
from mctsvs.testing import through_plain_data

SVM: dict[str, Any] = {
    "kernel": Categorical(["linear", "rbf", "poly"], default="rbf"),
    "penalty": Float(1e-3, 1e3, log=True, default=1.0),
    "gamma": Float(1e-4, 10.0, log=True, when={"kernel": ["rbf", "poly"]}),
    "degree": Integer(2, 6, when={"kernel": "poly"}),
    "offset": Float(0.0, 2.0, default=0.5, when={"degree": range(3, 9)}),
    "scaled": Boolean(),
    "batch": Ordinal([16, 32, 64], default=32, when={"scaled": True}),
    "seed": Fixed(7),
    "cache": Fixed("large", when={"scaled": [True]}),
}
SMALL: dict[str, Any] = {  # 4 points without c, and with it 3 for each of the two
    "a": Boolean(),
    "b": Ordinal(["low", "high"]),
    "c": Integer(1, 3, when={"a": [True]}),
}


def expected_names(params: dict[str, Any]) -> list[str]:
    names = ["kernel", "penalty"]
    names += ["gamma"] if params["kernel"] != "linear" else []
    names += ["degree"] if params["kernel"] == "poly" else []
    names += ["offset"] if params.get("degree", 0) >= 3 else []
    names += ["scaled"]
    names += ["batch"] if params["scaled"] else []
    return [*names, "seed", *(["cache"] if params["scaled"] else [])]


def test_what_does_not_exist_is_absent() -> None:
    space = Space.of(SVM)
    U = np.random.default_rng(0).random((200, space.n_coordinates))
    seen = set()
    for u, there in zip(U, space.active(U), strict=True):
        params = space.params(u)
        seen.add(tuple(params))
        assert list(params) == expected_names(params)
        assert [name for name, is_there in zip(space.names, there, strict=True) if is_there] == [
            name for name in params if name not in space.fixed
        ]
        snapped = space.snap(u)
        assert snapped.tobytes() == space.snap(snapped).tobytes()
        assert space.params(snapped) == params
        np.testing.assert_allclose(space.encode_params(params), snapped, atol=1e-12)
        assert space.params_at(space.vector(params)) == params
        x = space.decode(u)
        assert np.array_equal(x[~there], space.standard[~there])
    assert len(seen) == 8


def test_a_variable_may_stand_before_those_that_it_depends_on() -> None:
    space = Space.of(
        {
            "c": Float(0, 1, when={"b": [2, 3]}),
            "b": Integer(1, 3, when={"a": True}),
            "a": Boolean(),
        }
    )
    for u in np.random.default_rng(0).random((100, space.n_coordinates)):
        params = space.params(space.snap(u))
        assert ("b" in params) == params["a"]
        assert ("c" in params) == (params.get("b", 0) >= 2)


def test_absent_variables_change_nothing() -> None:
    space = Space.of(SVM)
    u = space.encode_params({"kernel": "linear", "penalty": 1.0, "scaled": False})
    moved = u.copy()
    absent = ~space.active(u)[space.owner]
    moved[absent] = np.random.default_rng(1).random(int(absent.sum()))
    assert not np.array_equal(moved, u)
    assert space.snap(moved).tobytes() == u.tobytes()
    given = space.encode_params({"kernel": "linear", "penalty": 1.0, "scaled": False, "gamma": 3.0, "seed": 7})
    assert given.tobytes() == u.tobytes()


def test_ordinals_of_numbers_are_numbers_in_the_vector() -> None:
    space = Space.of([Ordinal([1, 1000, 10]), Ordinal(["s", "m", "l"]), Boolean(), Ordinal([0.5])])
    x = np.array([10.0, 2.0, 1.0, 0.5])
    assert np.array_equal(space.decode(space.encode(x)), x)
    assert space.params(space.encode(x)) == {"x0": 10, "x1": "l", "x2": True, "x3": 0.5}
    assert space.sizes.tolist() == [3, 3, 2, 1]
    assert space.values(0).tolist() == [1, 1000, 10]
    assert space.bounds.tolist() == [[1, 1000], [0, 2], [0, 1], [0.5, 0.5]]
    assert space.n_coordinates == 4
    with pytest.raises(InputError, match=r"variable 'x0': value 11.0 must fit Ordinal\(values=\(1, 1000, 10\)\)"):
        space.encode(np.array([11.0, 2.0, 1.0, 0.5]))
    rng = np.random.default_rng(0)
    assert {space.other_value(0, 1.0, 1, rng) for _ in range(20)} == {1000.0}


def test_state_keeps_everything() -> None:
    space = Space.of(SVM)
    again = Space.from_state(json.loads(json.dumps(space.to_state())))
    assert again == space
    assert again.declared == SVM
    assert space != Space.of({**SVM, "seed": Fixed(8)})
    assert space != Space.of({**SVM, "scaled": Boolean(default=True)})


def test_points_are_counted_with_their_conditions() -> None:
    assert Space.of(SMALL).size == 8
    every = Space.of(SMALL).every()
    assert every is not None
    assert len({tuple(row) for row in every.tolist()}) == len(every) == 8
    assert Space.of(SVM).size == np.inf
    chain: dict[str, Any] = {"b0": Boolean()}
    for i in range(1, 40):
        chain[f"b{i}"] = Boolean(when={f"b{i - 1}": True})
    assert Space.of(chain).size == 41
    assert Space.of({**{f"b{i}": Boolean() for i in range(40)}, "c": Boolean(when={"b0": True})}).size == 1.5 * 2**40


@pytest.mark.parametrize("method", ["auto", "mcts-vs-bo", "random", "turbo"])
def test_a_conditional_lattice_is_searched_to_its_end(method: str) -> None:
    opt = Optimizer(SMALL, method=method, seed=0)
    seen = set()
    for _ in range(8):
        (trial,) = opt.ask()
        seen.add(tuple(trial.params.items()))
        opt.tell(trial, float(trial.params.get("c", 0)))
    assert len(seen) == 8
    with pytest.raises(SpaceExhausted, match="all 8 points"):
        opt.ask()


def test_the_defaults_are_the_first_point() -> None:
    opt = Optimizer(SVM, seed=3)
    first, second = opt.ask(2)
    assert first.params == {"kernel": "rbf", "penalty": 1.0, "gamma": pytest.approx(10**-1.5), "scaled": True} | {
        "batch": 32,
        "seed": 7,
        "cache": "large",
    }
    assert (first.source, second.source) == ("default", "proposed")
    assert second.params["penalty"] == pytest.approx(1.0)  # the centre
    assert all(trial.source == "proposed" for trial in opt.ask(5))
    again = Optimizer.restore(through_plain_data(opt.state()))
    assert [t.params for t in again.ask(3)] == [t.params for t in opt.ask(3)]


def test_the_users_points_come_before_the_defaults() -> None:
    opt = Optimizer({"a": Float(0, 1, default=0.25), "b": (0, 1)}, method="random")
    opt.enqueue([{"a": 0.1, "b": 0.2}])
    assert [t.source for t in opt.ask(3)] == ["enqueued", "default", "proposed"]
    known = Optimizer({"a": Float(0, 1, default=0.25), "b": (0, 1)}, method="random")
    known.add({"a": 0.25, "b": 0.5}, 1.0)
    assert known.ask()[0].source == "proposed"


def test_a_study_goes_on_with_defaults_and_conditions(tmp_path: Path) -> None:
    path = tmp_path / "run.db"

    def f(params: dict[str, Any]) -> float:
        return float(abs(np.log10(params["penalty"])) + params.get("degree", 0) + params["scaled"])

    whole = Optimizer(SVM, seed=1, method="mcts-vs-bo")
    for _ in range(12):
        (trial,) = whole.ask()
        whole.tell(trial, f(trial.params))
    for n in (1, 5, 12):
        with Study(path, SVM, seed=1, method="mcts-vs-bo") as study:
            study.optimize(f, n)
    with Study(path, SVM) as study:
        assert [t.params for t in study.trials] == [t.params for t in whole.trials]
        study.export(tmp_path / "table.csv")
    with Study(tmp_path / "other.db", SVM) as other:
        assert other.import_points(tmp_path / "table.csv") == 12
        assert [t.params for t in other.trials] == [pytest.approx(t.params) for t in whole.trials]
    with pytest.raises(InputError, match="the variable penalty is Float"):
        Study(path, {**SVM, "penalty": Float(1e-3, 1e3, log=True)})


@pytest.mark.needs("pandas", "pyarrow")
def test_tables_have_empty_cells(tmp_path: Path) -> None:
    with Study(tmp_path / "run.db", SVM, method="random") as study:
        study.optimize(lambda params: params["penalty"], 20)
        frame = study.to_dataframe()
        assert frame["degree"].isna().sum() == sum("degree" not in t.params for t in study.trials) > 0
        study.export(tmp_path / "table.parquet")
        for source in (tmp_path / "table.parquet", frame):
            with Study(tmp_path / f"{type(source).__name__}.db", SVM) as other:
                assert other.import_points(source) == 20
                assert [t.params for t in other.trials] == [pytest.approx(t.params) for t in study.trials]


BAD: list[tuple[Callable[[], object], str]] = [
    (lambda: Ordinal([]), r"values \[\] must be a list of at least one value"),
    (lambda: Ordinal([1, 1.0]), "value 1.0 is there twice"),
    (lambda: Fixed([1]), r"value \[1\] must be None, a bool, number, string or tuple"),
    (lambda: Float(0, 1, default=2), r"default 2 must be one of the values of Float\(low=0, high=1"),
    (lambda: Float(0, 1, step=0.1, default=0.25), "default 0.25 must be"),
    (lambda: Float(0, 1, default="a"), "default 'a' must be"),
    (lambda: Integer(0, 4, default=1.5), "default 1.5 must be"),
    (lambda: Categorical(["a"], default=None), "default None must be"),
    (lambda: Boolean(default="yes"), "default 'yes' must be"),
    (lambda: Boolean(when=["kind"]), r"when=\['kind'\] must be a dict of name -> values"),
    (lambda: Boolean(when={3: 1}), "when={3: 1} must be a dict"),
    (lambda: Boolean(when={"kind": []}), "has no value of 'kind': it needs at least one"),
    (lambda: Space.of([Boolean(), Fixed(1)]), r"variable 1: Fixed\(value=1\) needs names"),
    (lambda: Space.of([Boolean(when={"x0": True})]), r"when=\{'x0': \(True,\)\}\) needs names"),
    (lambda: Space.of({"a": Fixed(1)}), "the space has 0 variables to search"),
    (lambda: Space.of({"a": Boolean(when={"b": 1})}), "variable 'a': when has 'b', which is not in the space"),
    (lambda: Space.of({"a": (0, 1), "b": Boolean(when={"a": 1})}), "variable 'b': .* 'a' is a Float"),
    (
        lambda: Space.of({"a": Ordinal([1, 2]), "b": Boolean(when={"a": [1, 3]})}),
        "when has 3, which is no value of 'a'",
    ),
    (lambda: Space.of({"a": Integer(1, 2), "b": Boolean(when={"a": [3, 4]})}), "when has 3, which is no value of 'a'"),
    (
        lambda: Space.of({"a": Boolean(), "k": Fixed(1), "b": Boolean(when={"k": 2})}),
        "'b' does not exist at any point: 'k' is fixed at 1",
    ),
    (
        lambda: Space.of({"a": Boolean(when={"c": True}), "b": Boolean(when={"a": True}), "c": Boolean(when={"b": 1})}),
        "the conditions go round in a circle: 'a' needs 'c' needs 'b' needs 'a'",
    ),
    (lambda: Space.of(SVM).encode_params({"kernel": "rbf", "penalty": 1, "scaled": False}), "'gamma' is missing"),
    (
        lambda: Space.of(SMALL | {"f": Fixed(3)}).encode_params({"a": False, "b": "low", "f": 4}),
        "'f': value 4 must fit",
    ),
]


@pytest.mark.parametrize(("make", "sentence"), BAD)
def test_bad_variables(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make()


def test_fixed_parents_pass_their_conditions_on() -> None:
    space = Space.of(
        {
            "kind": Categorical(["a", "b", "c"]),
            "mode": Fixed("fast", when={"kind": ["a", "b"]}),
            "speed": Integer(1, 5, when={"mode": "fast", "kind": ["b", "c"]}),
        }
    )
    there = {kind: list(space.params_at(np.array([i, 3.0]))) for i, kind in enumerate("abc")}
    assert there == {"a": ["kind", "mode"], "b": ["kind", "mode", "speed"], "c": ["kind"]}


@pytest.mark.needs("optuna")
def test_optuna_distributions() -> None:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    space = Space.from_optuna(
        {
            "rate": FloatDistribution(1e-5, 1.0, log=True),
            "layers": IntDistribution(1, 9, step=2),
            "kind": CategoricalDistribution(["a", "b"]),
            "seed": IntDistribution(3, 3),
            "only": CategoricalDistribution([None]),
        }
    )
    assert space.declared == {
        "rate": Float(1e-5, 1.0, log=True),
        "layers": Integer(1, 9, step=2),
        "kind": Categorical(["a", "b"]),
        "seed": Fixed(3),
        "only": Fixed(None),
    }
    with pytest.raises(InputError, match="variable 'a': 3 must be a distribution of Optuna"):
        Space.from_optuna({"a": 3})
    with pytest.raises(InputError, match="must be a dict"):
        Space.from_optuna(3)  # type: ignore[arg-type]


@pytest.mark.needs("ConfigSpace")
def test_configspace() -> None:
    import ConfigSpace as cs

    theirs = cs.ConfigurationSpace(seed=0)
    kernel = cs.CategoricalHyperparameter("kernel", ["linear", "rbf", "poly"], default_value="rbf")
    penalty = cs.UniformFloatHyperparameter("penalty", 1e-3, 1e3, log=True, default_value=1.0)
    gamma = cs.UniformFloatHyperparameter("gamma", 1e-4, 10.0, log=True, default_value=0.1)
    degree = cs.UniformIntegerHyperparameter("degree", 2, 6, default_value=3)
    size = cs.OrdinalHyperparameter("size", ["s", "m", "l"], default_value="m")
    flag = cs.CategoricalHyperparameter("flag", [False, True], default_value=True)
    theirs.add([kernel, penalty, gamma, degree, size, flag, cs.Constant("seed", 3)])
    theirs.add(cs.InCondition(gamma, kernel, ["rbf", "poly"]))
    theirs.add(cs.AndConjunction(cs.EqualsCondition(degree, kernel, "poly"), cs.EqualsCondition(degree, flag, True)))
    space = Space.from_configspace(theirs)
    assert dict(space.declared) == {
        "kernel": Categorical(["linear", "rbf", "poly"], default="rbf"),
        "penalty": Float(1e-3, 1e3, log=True, default=1.0),
        "gamma": Float(1e-4, 10.0, log=True, default=0.1, when={"kernel": ["rbf", "poly"]}),
        "degree": Integer(2, 6, default=3, when={"kernel": ["poly"], "flag": [True]}),
        "size": Ordinal(["s", "m", "l"], default="m"),
        "flag": Boolean(default=True),
        "seed": Fixed(3),
    }
    for configuration in theirs.sample_configuration(20):
        params = dict(configuration)
        assert space.params_at(space.vector(params)) == params
    theirs.add(cs.ForbiddenEqualsClause(kernel, "poly"))
    with pytest.raises(InputError, match=r"the forbidden clause .* is not supported"):
        Space.from_configspace(theirs)
    with pytest.raises(InputError, match="must be a ConfigSpace"):
        Space.from_configspace(SVM)


@pytest.mark.needs("ConfigSpace")
def test_what_configspace_has_and_we_do_not() -> None:
    import ConfigSpace as cs

    theirs = cs.ConfigurationSpace()
    a = cs.UniformIntegerHyperparameter("a", 1, 5)
    b = cs.UniformIntegerHyperparameter("b", 1, 5)
    theirs.add([a, b])
    theirs.add(cs.GreaterThanCondition(b, a, 3))
    with pytest.raises(InputError, match=r"the condition .* is not supported"):
        Space.from_configspace(theirs)
    bell = cs.ConfigurationSpace()
    bell.add(cs.NormalFloatHyperparameter("c", 0.0, 1.0, lower=-3.0, upper=3.0))
    with pytest.raises(InputError, match="variable 'c': a NormalFloatHyperparameter is not supported"):
        Space.from_configspace(bell)


@pytest.mark.needs("ConfigSpace")
def test_weights_of_configspace_are_left_out_with_a_warning() -> None:
    import ConfigSpace as cs

    theirs = cs.ConfigurationSpace()
    theirs.add(cs.CategoricalHyperparameter("kind", ["a", "b"], weights=[1, 3]))
    with pytest.warns(UserWarning, match="variable 'kind': the weights .* are left out") as caught:
        space = Space.from_configspace(theirs)
    assert caught[0].filename == __file__
    assert space.names == ("kind",)
    even = cs.ConfigurationSpace()
    even.add(cs.CategoricalHyperparameter("kind", ["a", "b"], weights=[2, 2]))
    assert Space.from_configspace(even).names == ("kind",)


def test_fixed_variables_in_constraints() -> None:
    space = {"a": (0.0, 1.0), "b": (0.0, 1.0), "most": Fixed(1.2), "name": Fixed("x"), "size": Ordinal(["s", "l"])}
    opt = Optimizer(space, method="random", constraints="a + b <= most - 0.5")
    assert all(t.params["a"] + t.params["b"] <= 0.7 for t in opt.ask(20))
    for text, sentence in [
        ("a <= name", "there is no variable 'name' in the space"),
        ("most <= 2", "there is no variable in it"),
        ("a + size <= 1", "has the ordinal 'size' in it, which is no number"),
    ]:
        with pytest.raises(InputError, match=sentence):
            Optimizer(space, constraints=text)
