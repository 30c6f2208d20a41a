"""COCO's suites: names, bounds, kinds of variables, known optima, and the same values in every process."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mctsvs.bench.problems import make, resolve
from mctsvs.bench.problems.coco import GROUPS, SUITES, CocoProblem, name_of
from mctsvs.cli import main
from mctsvs.optimizer import Optimizer
from mctsvs.optimizer.trial import split
from mctsvs.space import Float, Integer
from mctsvs.utils.validation import Array, InputError

if not os.environ.get("CI"):
    pytest.importorskip("cocoex")

PEERS = Path(__file__).parents[3] / "benchmarks" / "peers.py"


def best_point(problem: CocoProblem, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Array:
    """Where COCO's own optimum is, which it tells only by writing a file."""
    monkeypatch.chdir(folder)
    problem.instance.made._best_parameter("print")
    return np.array((folder / "._bbob_problem_best_parameter.txt").read_text().split(), dtype=np.float64)


def coco(name: str, seed: int = 0) -> CocoProblem:
    problem = make(name, seed=seed)
    assert isinstance(problem, CocoProblem)
    return problem


@pytest.mark.parametrize("suite", SUITES)
def test_every_function_of_a_suite_is_there(suite: str) -> None:
    known = SUITES[suite]
    for number in known.functions:
        problem = coco(name_of(suite, number, known.dimensions[2], 3))
        assert problem.name == f"{suite}_f{number}_{known.dimensions[2]}_i3"
        assert problem.instance.made.id_triple == (number, known.dimensions[2], 3)
        assert problem.bounds.shape == (known.dimensions[2], 2)
        assert problem.direction == "minimize"
        assert np.isfinite(split(problem(problem.bounds.mean(axis=1)))[0])


@pytest.mark.parametrize(
    "written", ["bbob-largescale_f8_80_i11", "BBOB-LargeScale_f8_80_i11", "bbob_largescale_f008_0080_i011"]
)
def test_names(written: str) -> None:
    problem = resolve(written)
    assert problem.name == "bbob-largescale_f8_80_i11"
    assert problem.dimension == 80
    assert problem.bounds.tolist() == [[-5.0, 5.0]] * 80
    assert make("bbob-largescale_f8_80_i1").name == "bbob-largescale_f8_80"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bbob-largescale_f25_80", "functions go from 1 to 24"),
        ("bbob-noisy_f1_20", "functions go from 101 to 130"),
        ("bbob-largescale_f8_81", "D is one of 20, 40, 80, 160, 320, 640"),
        ("bbob_f8_20_i0", "instances go from 1 to 1000"),
        ("bbob-biobj_f1_20", "did you mean 'bbob_f8_20'"),
    ],
)
def test_what_there_is_not(name: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make(name)
    with pytest.raises(InputError, match="cannot be varied by shift"):
        make("bbob_f8_20", shift=True)


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mctsvs.bench.problems.declare.importlib.util.find_spec", lambda module: None)
    with pytest.raises(InputError, match=r"needs cocoex, not installed here: pip install 'mctsvs\[coco\]'"):
        make("bbob_f8_20")


@pytest.mark.parametrize("suite", ["bbob", "bbob-largescale"])
def test_the_optimum_is_cocos_own(suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    for number in SUITES[suite].functions:
        for instance in (1, 12):
            problem = coco(name_of(suite, number, 20, instance))
            assert problem.optimum is not None
            x = best_point(problem, tmp_path, monkeypatch)
            assert problem(x) == pytest.approx(problem.optimum, abs=1e-6)
            assert min(map(problem, rng.uniform(-5, 5, (20, 20)))) > problem.optimum


def test_the_sphere_is_a_sphere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = coco("bbob_f1_20_i7")
    centre, x = best_point(problem, tmp_path, monkeypatch), np.linspace(-4, 4, 20)
    assert problem.optimum is not None
    assert problem(x) - problem.optimum == pytest.approx(((x - centre) ** 2).sum())


def test_instances_differ() -> None:
    x = np.full(20, 0.5)
    assert len({make(f"bbob-largescale_f8_20_i{i}")(x) for i in range(1, 6)}) == 5


@pytest.mark.parametrize("name", ["bbob-largescale_f24_40_i11", "bbob-mixint_f8_20", "bbob-noisy_f108_20"])
def test_the_same_values_everywhere(name: str) -> None:
    xs = np.random.default_rng(5).uniform(0, 1, (4, make(name).dimension))
    first = make(name, seed=3)
    there = [copy.deepcopy(first), pickle.loads(pickle.dumps(first)), make(name, seed=3)]
    here = [first(x).hex() for x in xs]
    # one after the other: COCO has one stream of noise a process, and a noisy problem made later takes it over
    for problem in there:
        other = pickle.loads(pickle.dumps(problem))
        assert [other(x).hex() for x in xs] == here
    code = (
        "import numpy as np; from mctsvs.bench.problems import make;"
        f"problem = make({name!r}, seed=3);"
        "xs = np.random.default_rng(5).uniform(0, 1, (4, problem.dimension));"
        "print(*(problem(x).hex() for x in xs))"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.split() == here
    assert process.stderr == ""


def test_noise_is_cocos_and_follows_the_seed() -> None:
    x = np.full(20, 0.5)
    values = []
    for seed in (0, 1):
        problem = make("bbob-noisy_f107_20", seed=seed)
        values += [problem(x) for _ in range(50)]
    assert len(set(values)) == 100
    exact = make("bbob_f1_20")
    assert exact.optimum is not None
    # f107 is the sphere times exp(N(0, 1)): the median of 100 logarithms has a standard error of 0.13, and the draws
    # are the same in every run
    logarithms = np.log(np.array(values) - exact.optimum) - np.log(exact(x) - exact.optimum)
    assert abs(np.median(logarithms)) < 0.5


def test_whole_variables_come_first() -> None:
    problem = coco("bbob-mixint_f1_20")
    kinds = problem.space
    assert kinds[:4] == [Integer(0, 1)] * 4
    assert kinds[15] == Integer(0, 15)
    assert kinds[16:] == [Float(-5.0, 5.0)] * 4
    opt = Optimizer(kinds, direction="minimize", method="random", seed=0)
    (trial,) = opt.ask()
    assert (trial.x[:16] == np.round(trial.x[:16])).all()
    assert (trial.x[16:] != np.round(trial.x[16:])).all()
    opt.tell(trial, problem(trial.x))
    assert opt.best.value == problem(trial.x)


def test_constraints() -> None:
    problem = coco("bbob-constrained_f3_20")
    assert problem.n_constraints == len(problem.constraints(np.zeros(20))) == 9
    feasible = problem.instance.made.initial_solution  # COCO promises it
    assert (problem.constraints(feasible) <= 0).all()
    assert (problem.constraints(np.zeros(20)) > 0).any()
    with pytest.raises(InputError, match="takes a vector of 20 numbers"):
        problem.constraints(np.zeros(3))
    value, measured = problem(feasible)
    assert isinstance(value, float)
    assert list(measured.values()) == problem.constraints(feasible).tolist()
    free = coco("bbob_f1_20")
    assert free.n_constraints == len(free.constraints(np.zeros(20))) == 0


def test_groups_are_all_functions() -> None:
    assert [number for group in GROUPS.values() for number in group] == list(SUITES["bbob"].functions)


def test_no_files_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for suite, known in SUITES.items():
        make(name_of(suite, known.functions[0], 20, 1))(np.zeros(20))
    assert list(tmp_path.iterdir()) == []


def test_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "bench",
        "compare",
        "bbob-largescale_f1_20",
        "--methods",
        "random,auto",
        "--seeds",
        "1-2",
        "--budget",
        "30",
    ]
    assert main([*words, "-o", str(tmp_path), "--workers", "1"]) == 0
    printed = capsys.readouterr().out
    assert "bbob-largescale_f1_20" in printed
    assert "auto" in printed


@pytest.mark.slow
def test_a_suite_by_one_command_which_can_be_repeated(tmp_path: Path) -> None:
    words = "coco --dimensions 20 --functions 1,8 --instances 11-12 --budget 12 --workers 1 --methods random pycma"
    places = ["--results", str(tmp_path / "runs"), "--figure", str(tmp_path / "coco")]
    said = [
        subprocess.run(
            [sys.executable, str(PEERS), *words.split(), *places], capture_output=True, text=True, check=True
        )
        for _ in range(2)
    ]
    assert said[0].stdout.startswith("1/8 random on bbob-largescale_f1_20_i11, seed 11\n")
    assert said[1].stdout.startswith("## bbob-largescale, 20 variables, 12 evaluations\n\n4 problems.")
    assert (tmp_path / "coco.png").stat().st_size > 1000
    assert len(list((tmp_path / "runs").glob("*.json.gz"))) == 8


@pytest.mark.parametrize(
    ("function", "base"), [(101, 1), (105, 8), (109, 1), (113, 7), (120, 14), (124, 17), (129, 21)]
)
def test_values_without_noise_are_those_of_the_function_behind_it(function: int, base: int) -> None:
    x = np.random.default_rng(function).uniform(-4.0, 4.0, 20)
    noisy, plain = make(f"bbob-noisy_f{function}_20_i2"), make(f"bbob_f{base}_20_i2")
    assert isinstance(noisy, CocoProblem)
    assert noisy.instance.noiseless(x) == pytest.approx(plain(x), rel=1e-12)


def test_values_without_noise_are_the_middle_of_gaussian_noise() -> None:
    """Of a function that the suite bbob has in another form; the noise is a factor whose median is 1."""
    problem = make("bbob-noisy_f116_20", seed=1)
    assert isinstance(problem, CocoProblem)
    x = np.random.default_rng(0).uniform(-4.0, 4.0, 20)
    middle = np.median([problem(x) for _ in range(4001)])
    assert problem.instance.noiseless(x) == pytest.approx(middle, rel=0.1)
