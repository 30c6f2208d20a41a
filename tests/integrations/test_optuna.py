"""Our methods as an Optuna sampler."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if "CI" not in os.environ:
    pytest.importorskip("optuna")

import optuna
from optuna.testing import pytest_samplers

from mctsvs import InputError
from mctsvs.integrations.optuna import VARIABLES, MCTSVSSampler
from mctsvs.methods.auto.constants import REPEATS

optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.mark.filterwarnings("ignore:all . points of the space have been tried")
class TestConformance(
    pytest_samplers.BasicSamplerTestCase,  # type: ignore[misc, unused-ignore]
    pytest_samplers.RelativeSamplerTestCase,  # type: ignore[misc, unused-ignore]
    pytest_samplers.SingleOnlySamplerTestCase,  # type: ignore[misc, unused-ignore]
):
    """Optuna's own tests of samplers."""

    @pytest.fixture
    def sampler(self) -> Callable[[], MCTSVSSampler]:
        return lambda: MCTSVSSampler(seed=0)


def sparse(trial: Any) -> float:
    x = [trial.suggest_float(f"x{i:02}", 0, 1) for i in range(30)]
    return float((x[3] - 0.2) ** 2 + (x[17] - 0.9) ** 2)


def test_finds_what_matters_and_records_what_it_moved() -> None:
    study = optuna.create_study(sampler=MCTSVSSampler(seed=1))
    study.optimize(sparse, n_trials=120)
    # random search gets 0.006 on average over 120 trials (area of a circle); seeds 0 to 4 give less than 1e-4
    assert study.best_value < 2e-3
    moved = [trial.system_attrs.get(VARIABLES) for trial in study.trials]
    assert moved[0] is None  # nothing was known of the parameters then
    assert all(set(names) <= {f"x{i:02}" for i in range(30)} for names in moved[1:] if names is not None)
    late = [names for names in moved[30:] if names is not None]
    assert len(late) == 90
    assert min(map(len, late)) < 15, "it never chose a small group"


def test_the_same_seed_gives_the_same_trials() -> None:
    runs = []
    for _ in range(2):
        study = optuna.create_study(sampler=MCTSVSSampler(seed=3))
        study.optimize(sparse, n_trials=25)
        runs.append([trial.params for trial in study.trials])
    assert runs[0] == runs[1]


def test_workers_that_come_and_go_carry_on_each_others_search() -> None:
    """Every worker makes five trials and ends: what the ones before it found out is not asked again."""
    study = optuna.create_study()
    for worker in range(18):
        study.sampler = MCTSVSSampler(seed=worker)
        study.optimize(lambda t: sum((t.suggest_float(f"x{i}", 0, 1) - 0.3) ** 2 * (i < 2) for i in range(40)), 5)
    points = {tuple(trial.params.values()) for trial in study.trials}
    assert len(points) >= 90 - REPEATS  # of the incumbent in all, not for each worker
    assert study.best_value < 0.01


def test_maximises_and_survives_failures_and_pruning() -> None:
    def objective(trial: Any) -> float:
        x = trial.suggest_float("x", 0, 1)
        if trial.number % 5 == 1:
            raise optuna.TrialPruned
        if trial.number % 5 == 2:
            raise ZeroDivisionError
        return float(-((x - 0.7) ** 2))

    study = optuna.create_study(direction="maximize", sampler=MCTSVSSampler(seed=0))
    study.optimize(objective, n_trials=40, catch=ZeroDivisionError)
    assert abs(study.best_params["x"] - 0.7) < 0.05


def test_conditional_parameters_are_sampled_beside_the_shared_ones() -> None:
    def objective(trial: Any) -> float:
        kind = trial.suggest_categorical("kind", ["a", "b"])
        shared = trial.suggest_float("shared", -1, 1)
        own = trial.suggest_int("depth", 1, 5) if kind == "a" else trial.suggest_float("width", 0.1, 10, log=True)
        return float(shared**2 + own)

    study = optuna.create_study(sampler=MCTSVSSampler(seed=0))
    study.optimize(objective, n_trials=40)
    assert study.best_params["kind"] == "b"
    for trial in study.trials[20:]:  # by then both branches were seen
        assert set(trial.system_attrs[VARIABLES]) <= {"kind", "shared"}
        assert set(trial.params) > {"kind", "shared"}


WORKER = """
import sys, optuna
from mctsvs.integrations.optuna import MCTSVSSampler
optuna.logging.set_verbosity(optuna.logging.ERROR)
def shared(trial):
    return sum((trial.suggest_float(f"x{i:02}", 0, 1) - 0.3) ** 2 for i in range(8))
seed, storage = int(sys.argv[1]), sys.argv[2]
if not storage.startswith("sqlite"):
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend
    storage = JournalStorage(JournalFileBackend(storage))
study = optuna.load_study(study_name="shared", storage=storage, sampler=MCTSVSSampler(seed=seed, method="mcts-vs-rs"))
study.optimize(shared, n_trials=10)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rdb", "journal"])
def test_two_processes_share_a_storage(tmp_path: Path, kind: str) -> None:
    if kind == "rdb":
        address = f"sqlite:///{tmp_path / 'optuna.db'}"
        storage: Any = address
    else:
        from optuna.storages.journal import JournalFileBackend

        address = str(tmp_path / "journal.log")
        storage = optuna.storages.JournalStorage(JournalFileBackend(address))
    optuna.create_study(study_name="shared", storage=storage)
    commands = [[sys.executable, "-W", "ignore", "-c", WORKER, str(seed), address] for seed in (1, 2)]
    workers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]
    for worker in workers:
        _, errors = worker.communicate(timeout=120)
        assert worker.returncode == 0, errors
    study = optuna.load_study(study_name="shared", storage=storage, sampler=MCTSVSSampler(seed=3, method="mcts-vs-rs"))
    assert len(study.trials) == 20
    study.optimize(lambda trial: sum(trial.suggest_float(f"x{i:02}", 0, 1) for i in range(8)), n_trials=1)
    assert len(study.sampler.engine.history) == 20
    information = study.sampler.engine.selector.information
    moved, everything = np.zeros(8), [f"x{i:02}" for i in range(8)]
    for trial in study.trials[:20]:
        moved[[everything.index(name) for name in trial.system_attrs.get(VARIABLES) or everything]] += 1
    assert np.array_equal(information.count, moved), "the information set is not that of all workers' trials"


def test_an_enqueued_point_is_somebody_elses() -> None:
    """Its trial asks the sampler too, but is evaluated elsewhere than the method proposed."""
    sampler = MCTSVSSampler(seed=0, method="rembo", initial_points=4)
    study = optuna.create_study(sampler=sampler)
    study.optimize(sparse, n_trials=2)
    study.enqueue_trial({f"x{i:02}": 0.5 for i in range(30)})
    study.enqueue_trial({f"x{i:02}": 0.5 for i in range(20)})
    study.optimize(sparse, n_trials=6)
    engine: Any = sampler.engine
    own = [trial.number for trial in study.trials[:-1] if VARIABLES in trial.system_attrs]
    assert own == [1, 4, 5, 6]
    assert engine.history.proposal_ids.tolist() == [-1, 0, -1, -1, 2, 3, 4]  # proposal id 1 was half overwritten
    assert np.allclose(engine.low.X[2], 0.5)


def lattice(trial: Any) -> float:
    a, b = trial.suggest_int("a", 0, 4), trial.suggest_float("b", 0.0, 1.0, step=0.5)
    return float((a - 3) ** 2 + b + (trial.suggest_categorical("c", ["x", "y", "z", "w"]) != "z"))


@pytest.mark.parametrize("method", ["auto", "bo", "random", "hesbo"])
def test_no_point_twice_until_there_is_none_left(method: str) -> None:
    study = optuna.create_study(sampler=MCTSVSSampler(seed=0, method=method))
    study.optimize(lattice, n_trials=60)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 60  # 5 x 3 x 4
    with pytest.warns(UserWarning, match="all 60 points of the space have been tried") as warned:
        study.optimize(lattice, n_trials=8)
    assert len(warned) == 1
    assert len({tuple(trial.params.values()) for trial in study.trials[60:]}) > 1


def test_a_point_known_in_the_shared_parameters_may_be_new_in_the_others() -> None:
    def objective(trial: Any) -> float:
        kind = trial.suggest_categorical("kind", ["a", "b"])
        return float(trial.suggest_float(f"own-{kind}", 0.0, 1.0) + (kind == "a"))

    study = optuna.create_study(sampler=MCTSVSSampler(seed=0))
    study.optimize(objective, n_trials=30)  # a warning would be an error
    assert study.best_params["kind"] == "b"


def test_threads_share_a_sampler() -> None:
    """The first trials begin before any parameter is known; all others are told apart by one lock."""
    study = optuna.create_study(sampler=MCTSVSSampler(seed=0, method="mcts-vs-bo"))
    study.optimize(lattice, n_trials=1)
    study.optimize(lattice, n_trials=59, n_jobs=8)
    assert [trial.number for trial in study.trials] == list(range(60))
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 60
    study = optuna.create_study(sampler=MCTSVSSampler(seed=0))
    study.optimize(sparse, n_trials=60, n_jobs=8)
    assert all(trial.state == optuna.trial.TrialState.COMPLETE for trial in study.trials)
    assert study.sampler.engine.history.proposal_ids.max() >= 40, "a thread threw away what the sampler had built up"


def test_copies_of_a_sampler_go_different_ways() -> None:
    """As Optuna asks before it runs copies beside each other."""
    study = optuna.create_study(sampler=MCTSVSSampler(seed=0))
    study.optimize(sparse, n_trials=5)
    points = []
    for reseed in (False, False, True):
        sampler = pickle.loads(pickle.dumps(study.sampler))
        if reseed:
            sampler.reseed_rng()
        other = optuna.create_study(sampler=sampler)
        other.add_trials(study.trials)
        other.optimize(sparse, n_trials=1)
        points.append(other.trials[-1].params)
    assert points[0] == points[1] != points[2]


def test_bad_arguments_are_one_sentence_and_a_sampler_can_be_pickled() -> None:
    with pytest.raises(InputError, match="'magic'"):
        MCTSVSSampler(method="magic")
    with pytest.raises(InputError, match="no option 'speed'"):
        MCTSVSSampler(speed=3)
    with pytest.raises(InputError, match="seed=-1"):
        MCTSVSSampler(seed=-1)
    study = optuna.create_study(sampler=pickle.loads(pickle.dumps(MCTSVSSampler(seed=0))))
    study.optimize(sparse, n_trials=3)
    assert len(study.trials) == 3


@pytest.mark.parametrize("method", ["auto", "scbo", "mcts-vs-rs"])
def test_constraints_are_passed_on(method: str) -> None:
    def objective(trial: optuna.Trial) -> float:
        x = [trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(6)]
        trial.set_user_attr("c", (3.0 - sum(x), x[0] - 0.9))
        return float(sum(x))

    sampler = MCTSVSSampler(method=method, seed=0, constraints_func=lambda trial: trial.user_attrs["c"])
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=40)
    assert all(len(trial.system_attrs["constraints"]) == 2 for trial in study.trials)
    feasible = [t.value for t in study.trials if max(t.user_attrs["c"]) <= 0.0 and t.value is not None]
    assert min(feasible) < (3.6 if method == "mcts-vs-rs" else 3.1)
    assert sampler.engine is not None
    history = sampler.engine.history
    told = np.array([t.user_attrs["c"] for t in study.trials[: len(history)]])
    assert np.array_equal(history.constraints, told)


@pytest.mark.parametrize(("noise", "seen"), [(0.5, True), (0.0, False)])
def test_noise_that_is_known_is_passed_on(noise: float, seen: bool) -> None:
    for constraints in (None, lambda trial: [-1.0]):
        sampler = MCTSVSSampler(seed=0, noise=noise, constraints_func=constraints)
        study = optuna.create_study(sampler=sampler)
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
        assert sampler.engine is not None
        assert sampler.engine.noise_seen is seen
    with pytest.raises(InputError, match="noise=-1 cannot be used"):
        MCTSVSSampler(noise=-1)
