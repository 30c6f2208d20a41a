"""Methods and problems of somebody else's: installed packages, files, modules."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mctsvs
from mctsvs import InputError, Optimizer, Study
from mctsvs.bench import problems
from mctsvs.methods import registry
from mctsvs.testing import check_method

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "plugin"
EVOLUTION = EXAMPLE / "src" / "mctsvs_example" / "evolution.py"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip has installed the example."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(EXAMPLE, folder / "source")  # building writes beside the source
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    command = [*(sys.executable, "-m", "pip", "install"), *options, "--target", str(folder / "target")]
    subprocess.run([*command, str(folder / "source")], check=True, capture_output=True, text=True)
    return folder / "target"


def python(code: str, *path: Path, cwd: Path | None = None) -> Any:
    """What the program prints, as JSON, run in another process that finds packages in `path`."""
    search = os.pathsep.join([*map(str, path), str(ROOT / "src")])
    environment = {**os.environ, "PYTHONPATH": search}
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_an_installed_package_is_listed_by_name_and_runs(installed: Path) -> None:
    code = """
        import json, mctsvs
        from mctsvs.bench import problems
        from mctsvs.methods import registry as methods

        found, complaints = methods.available()
        sphere, saddle = problems.make("sphere3_20", shuffle=True, seed=1), problems.make("Saddle")
        results = [
            mctsvs.maximize(sphere, sphere.bounds, budget=150, seed=0, method=name)
            for name in ("one-plus-one", "mcts-vs-steps", "random")
        ]
        lowest = mctsvs.minimize(lambda p: saddle([p["a"], p["b"]]), saddle.space, budget=150, method="one-plus-one")
        print(json.dumps({
            "new": {name: method.summary for name, method in found.items() if name not in methods.METHODS},
            "complaints": complaints + problems.available()[1],
            "forms": [family.form for family in problems.families()][-2:],
            "options": methods.options_of(found["mcts-vs-steps"]),
            "best": [result.fun for result in results],
            "saddle": [saddle.dimension, saddle.direction, lowest.fun],
        }))
    """
    said = python(code, installed)
    assert said["new"] == {
        "one-plus-one": "(1 + 1) evolution strategy: a few random variables of the best point take a normal step.",
        "mcts-vs-steps": "tree-selected variables moved by normal steps from the best point",
    }
    assert said["complaints"] == []
    assert said["forms"] == ["saddle", "SphereN_D"]
    assert {"cp", "step", "samples"} <= set(said["options"])
    one_plus_one, steps, random = said["best"]
    assert random < min(one_plus_one, steps) <= 0.0
    assert said["saddle"][:2] == [2, "minimize"]
    assert said["saddle"][2] == pytest.approx(-4.0, abs=1e-3)


def test_installed_methods_pass_the_conformance_suite(installed: Path) -> None:
    code = """
        import json
        from mctsvs.testing import check_method

        check_method("one-plus-one")
        check_method("mcts-vs-steps", step=0.3)
        print(json.dumps("passed"))
    """
    assert python(code, installed) == "passed"


def test_built_in_names_do_not_ask_packages(installed: Path) -> None:
    code = """
        import importlib.metadata, json

        def entry_points(**_):
            raise AssertionError("packages were looked at")

        importlib.metadata.entry_points = entry_points
        import mctsvs
        from mctsvs.bench import problems

        problem = problems.make("Levy2_5")
        print(json.dumps(mctsvs.maximize(problem, problem.bounds, budget=5, method="random").nfev))
    """
    assert python(code, installed) == 5


def test_a_file_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(EVOLUTION, tmp_path / "mine.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    check_method("mine.py:OnePlusOne", d=3)
    points = []
    for folder in (".", tmp_path):
        opt = Optimizer([(0, 1)] * 4, method=f"{folder}/mine.py:OnePlusOne", seed=1)
        for _ in range(10):
            (trial,) = opt.ask()
            opt.tell(trial, float(trial.x.sum()))
        points.append(opt.ask()[0].x.tolist())
    with Study(tmp_path / "s.db", [(0, 1)] * 4, method="mine.py:OnePlusOne", seed=1) as study:
        study.optimize(lambda x: float(x.sum()), budget=10)
    code = """
        import json
        from mctsvs import Study

        with Study("s.db", method="mine.py:OnePlusOne") as study:
            print(json.dumps([study.method, study.ask()[0].x.tolist()]))
    """
    method, elsewhere = python(code, cwd=tmp_path)
    assert method == "mine.py:OnePlusOne"
    assert points == [elsewhere, elsewhere]


def test_files_of_the_same_name_are_different_methods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name, value in (("one", 0.25), ("two", 0.75)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same.py").write_text(CONSTANT.format(value=value))
    points = [
        Optimizer([(0, 1)], method=f"{tmp_path / name}/same.py:Constant").ask()[0].x[0] for name in ("one", "two")
    ]
    assert points == [0.25, 0.75]


CONSTANT = """
import numpy as np
from mctsvs.methods.base import Engine

class Constant(Engine):
    def propose(self, n, pending):
        return [self.proposal(np.full(self.dimension, {value}), self.everything) for _ in range(n)]
"""

MINE = """
from mctsvs.methods.base import Engine
from mctsvs.methods.registry import Method
from mctsvs.utils.state import Saved

LIMIT = 3

class Half(Engine):
    pass

class Stub:
    def __init__(self, offsets, rng, options): pass
    def propose(self, n, pending): return []

class Bare(Engine):
    def __init__(self): pass
    def propose(self, n, pending): return []

class Solver(Saved):
    batch = None
    def __init__(self, options): pass
    def propose(self, n, subspace, rng): return rng.random((n, subspace.dimension))

product = Method("p", selector="mcts", solver=Solver)
unknown = Method("p", selector="mtcs", solver="random")
half = Method("p", solver="random")
needs = Method("p", selector="mcts", solver="random", needs=("not_there_at_all",))
"""


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("mine.py", "'mine.py' names no method: write path/to/file.py:method"),
        ("mine.py:", "names no method"),
        (":Half", "names no method"),
        ("other.py:Half", "there is no file '.*other.py': write path/to/file.py:method"),
        ("not_there.at_all:Half", "there is no module 'not_there.at_all'"),
        ("mctsvs.not_there:Half", "cannot import 'mctsvs.not_there': ModuleNotFoundError"),
        ("mine.py:Whole", "'mine.py' has no method 'Whole': it has Half, Stub, Bare, Solver"),
        ("mine.py:LIMIT", "3 is no Engine: give a class, or a Method"),
        ("mine.py:Half", "the class 'Half' is no Engine: it lacks propose$"),
        ("mine.py:Stub", "the class 'Stub' is no Engine: derive it from mctsvs.methods.base.Engine"),
        ("mine.py:Bare", r"it lacks a constructor \(offsets, rng, options\)"),
        ("mine.py:product", "the class 'Solver' is no Solver: it lacks options_type"),
        ("mine.py:unknown", "unknown selector 'mtcs': use one of mcts"),
        ("mine.py:half", "method 'mine.py:half' is incomplete: give it an engine, or a selector and a solver"),
        ("mine.py:needs", "needs not_there_at_all, not installed here: pip install not_there_at_all"),
        ("broken.py:Half", "cannot import .*broken.py': ZeroDivisionError: division by zero"),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str, words: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "broken.py").write_text("1 / 0\n")
    with pytest.raises(InputError, match=words) as error:
        Optimizer([(0, 1)], method=spec)
    assert "\n" not in str(error.value)


def test_a_method_must_be_text() -> None:
    with pytest.raises(InputError, match="method 3 cannot be used: give a name"):
        Optimizer([(0, 1)], method=3)  # type: ignore[arg-type]


def package(folder: Path, name: str, entry_points: str, **files: str) -> None:
    """What pip leaves of an installed package."""
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(textwrap.dedent(entry_points))
    for file, content in files.items():
        (folder / f"{file}.py").write_text(content)


def test_a_broken_package_is_named_and_harms_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = """
        [mctsvs.methods]
        bad = bad_module:Engine
        absent = pluggable:Absent
        good = pluggable:Constant
        random = pluggable:Constant

        [mctsvs.problems]
        bad = bad_module:f
        levy10_20 = pluggable:square
        square = pluggable:square
    """
    square = "\ndef square(x):\n    return x[0] ** 2\n\nspace = [(-1, 1)] * 3\n"
    code = CONSTANT.format(value=0.5) + square
    package(tmp_path, "first", entries, pluggable=code, bad_module="import not_there_at_all\n")
    package(tmp_path, "second", "[mctsvs.methods]\ngood = pluggable:Absent\n")
    monkeypatch.syspath_prepend(tmp_path)

    found, complaints = registry.available()
    assert [name for name in found if name not in registry.METHODS] == ["good"]
    assert complaints == [
        "method 'absent' of the package 'first' cannot be used: 'pluggable' has no method 'Absent': "
        "it has Constant, square",
        "method 'bad' of the package 'first' cannot be used: cannot import 'bad_module': "
        "ModuleNotFoundError: No module named 'not_there_at_all'",
        "method 'good' of the package 'second' cannot be used: another package has that name",
        "method 'random' of the package 'first' cannot be used: a built-in method has that name",
    ]
    assert Optimizer([(0, 1)], method="good").ask()[0].x == 0.5
    assert registry.find("random") is registry.METHODS["random"]
    with pytest.raises(InputError, match="method 'bad' of the package 'first' cannot be used: cannot import"):
        registry.find("bad")
    with pytest.raises(InputError, match=r"unknown method 'goof': did you mean 'good'\?"):
        registry.find("goof")

    assert problems.families()[-1].form == "square"
    assert [sentence.partition(": ")[0] for sentence in problems.available()[1]] == [
        "problem 'bad' of the package 'first' cannot be used",
        "problem 'levy10_20' of the package 'first' cannot be used",
    ]
    assert problems.available()[1][1].endswith("'levy10_20' is the name of a built-in problem")
    assert problems.make("square")(np.array([0.5, 0, 0])) == 0.25
    with pytest.raises(InputError, match=r"unknown problem 'sqare': did you mean 'square'\?.*; problem 'bad' of"):
        problems.make("sqare")


OWN = """
from mctsvs import Categorical

space = [(-1, 1)] * 3
direction = "maximize"

def vector(x):
    return x.sum()

def named(p):
    return p["a"] + (p["kind"] == "tanh")

named.space = {"a": (0, 1), "kind": Categorical(["relu", "tanh"])}
named.direction = "minimize"
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "bare.py").write_text("def f(x):\n    return 0.0\n")
    (tmp_path / "space.toml").write_text("[x]\ncount = 5\nlow = 0\nhigh = 2\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def test_a_function_says_its_space_itself_or_a_file_does(own: Path) -> None:
    vector, named = problems.resolve("own.py:vector"), problems.resolve("own.py:named")
    assert (vector.name, vector.dimension, vector.direction) == ("own.py:vector", 3, "maximize")
    assert vector([0.5, 0.25, 0.0]) == 0.75
    assert (named.dimension, named.direction) == (2, "minimize")
    assert [named([0.5, 0.0]), named([0.5, 1.0])] == [0.5, 1.5]
    assert problems.resolve("own.py:vector", direction="minimize").direction == "minimize"
    given = problems.resolve("own.py:vector", space="space.toml")
    assert (given.dimension, given.direction, given(np.full(5, 2.0))) == (5, "maximize", 10.0)
    assert problems.resolve("own.py:vector", noise=1.0, seed=3)([0, 0, 0]) != 0.0
    assert problems.resolve("Levy2_5", shuffle=True, seed=2).active is not None
    best = mctsvs.maximize(vector, vector.bounds, budget=5, method="random").fun
    assert best == mctsvs.maximize(lambda x: x.sum(), [(-1, 1)] * 3, budget=5, method="random").fun


def test_a_problem_of_a_file_works_in_another_process_and_folder(own: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    sent = pickle.dumps(problems.resolve("own.py:named")).hex()
    code = f"""
        import json, pickle
        print(json.dumps(pickle.loads(bytes.fromhex("{sent}"))([0.5, 1.0])))
    """
    assert python(code, cwd=tmp_path / "elsewhere") == 1.5


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (
            "bare.py:f",
            {},
            r"the variables of 'bare.py:f' are unknown: give a space file \(--space FILE\), or write",
        ),
        ("own.py:vector", {"shuffle": True}, "own.py:vector cannot be varied by shuffle: only noise"),
        ("own.py:vector", {"direction": "up"}, "unknown direction 'up': use one of minimize, maximize"),
        ("own.py:vector", {"space": "none.toml"}, "there is no space file 'none.toml'"),
        ("own.py:space", {}, "'space' in .* is no function but"),
        ("own.py", {}, "'own.py' names no function"),
        ("Levy2_5", {"space": "space.toml"}, "space does not go with the problem 'Levy2_5'"),
    ],
)
def test_what_is_wrong_with_a_problem(own: Path, text: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        problems.resolve(text, **options)


def test_a_stored_name_imports_no_file(own: Path) -> None:
    (own / "trap.py").write_text("raise SystemExit('imported')\n")
    with pytest.raises(InputError, match="unknown problem"):
        problems.make("trap.py:f")


def test_the_documented_snippets_run(tmp_path: Path) -> None:
    for page, file in (("methods.md", "mine.py"), ("problems.md", "own.py")):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        written, used = text.partition("## Your own ")[2].split("```python\n")[1:3]
        (tmp_path / file).write_text(written.partition("```")[0])
        (tmp_path / "space.toml").write_text("rate = [0, 1]\nwidth = [0, 1]\nx = [0, 1]\n")
        assert python(used.partition("```")[0] + "\nimport json; print(json.dumps(1))", cwd=tmp_path) == 1
