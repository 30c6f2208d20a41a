"""Whether the tests notice faults: small changes of the code, made one at a time, and what the tests say of each.

    python benchmarks/mutants.py [--sample 300] [--seed 0] [--processes 2] [--again FILE]

A mutant is a copy of the library with one change: another comparison or operator, a number one larger or smaller, a
condition turned round, a result of None, a statement left out. It is killed if a test fails or takes too long. Only the
fast tests run that reach the changed line, the fastest first. Changes are drawn at random from the code of spaces, of
studies and of statements about variables and noise.

A line is printed for every survivor, and a row of a Markdown table for every folder. build/mutants keeps the results;
`--again FILE` tries the survivors of such a file once more. Do not edit tests meanwhile. Needs Linux, and the extra
`test`.
"""

from __future__ import annotations

import os

# read once, when numpy loads its BLAS
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import ast
import contextlib
import copy
import importlib
import json
import multiprocessing
import random
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MADE = ROOT / "build" / "mutants"
CODE = {
    "space": ["space/*.py"],
    "study": ["study/*.py"],
    "variables and noise": ["optimizer/active_variables.py", "optimizer/explanation.py", "optimizer/unit_cube.py"],
}
TESTS = ["space", "study", "optimizer", "test_noise.py", "test_optimizer.py", "test_result.py", "test_properties.py"]
SECONDS = 30.0  # of tests for one mutant, as they take without a change
SLOWER = 5.0  # times as long: then a test counts as hanging
STARTING = 20.0  # seconds for a start of pytest

COMPARISONS: dict[type[ast.cmpop], list[type[ast.cmpop]]] = {
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


@dataclass
class Mutant:
    """One change: its file, its line, the place of its node in the tree, which of the node's changes, and in words."""

    folder: str
    file: str
    line: int
    node: int
    change: int
    text: str
    result: str = ""
    seconds: float = 0.0


def nodes(tree: ast.AST) -> list[ast.AST]:
    """All nodes that may be changed, in the order of the file; not texts of messages, annotations and docstrings."""
    found: list[ast.AST] = []

    def visit(node: ast.AST) -> None:
        found.append(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list") or isinstance(node, (ast.JoinedStr, ast.Raise)):
                continue
            if name == "test" and isinstance(value, ast.Name) and value.id == "TYPE_CHECKING":
                return
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    visit(child)

    visit(tree)
    return found


def changed(node: Any) -> Iterator[Any]:
    """The nodes that may stand in the place of one."""
    match node:
        case ast.Compare(ops=[one]):
            for other in COMPARISONS[type(one)]:
                yield ast.Compare(node.left, [other()], node.comparators)
        case ast.BoolOp():
            yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield node.operand
        case ast.BinOp() if type(node.op) in OPERATORS:
            yield ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
        case ast.AugAssign() if type(node.op) in OPERATORS:
            yield ast.AugAssign(node.target, OPERATORS[type(node.op)](), node.value)
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() | float() as value):
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))
        case ast.Return(value=ast.AST() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield ast.Return(ast.Constant(None))
        case ast.If() | ast.While():
            turned = copy.copy(node)
            turned.test = ast.UnaryOp(ast.Not(), node.test)
            yield turned
        case ast.IfExp():
            yield ast.IfExp(node.test, node.orelse, node.body)
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield ast.Pass()
        case ast.Continue():
            yield ast.Break()
        case ast.Break():
            yield ast.Continue()


def words(node: ast.AST) -> str:
    return ast.unparse(node).split("\n")[0][:80]


def mutants() -> list[Mutant]:
    """All of them."""
    found = []
    for folder, patterns in CODE.items():
        for path in sorted(p for pattern in patterns for p in (ROOT / "src" / "mctsvs").glob(pattern)):
            for i, node in enumerate(nodes(ast.parse(path.read_text()))):
                for change, other in enumerate(changed(node)):
                    file = str(path.relative_to(ROOT / "src"))
                    text = f"{words(node)}  ->  {words(other)}"
                    found.append(Mutant(folder, file, node.lineno, i, change, text))  # type: ignore[attr-defined]
    return found


def source(mutant: Mutant) -> str:
    """The file with the change."""
    tree = ast.parse((ROOT / "src" / mutant.file).read_text())
    old = nodes(tree)[mutant.node]
    new = ast.copy_location(list(changed(old))[mutant.change], old)

    class Replace(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return new if node is old else self.generic_visit(node)

    return ast.unparse(ast.fix_missing_locations(Replace().visit(tree)))


def pytest_run(tests: list[str], *plugins: Any) -> int:
    """Run tests in this process, which must not have loaded the library yet."""
    import hypothesis
    import pytest

    hypothesis.settings.register_profile(
        "mutants", derandomize=True, database=None, phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate]
    )
    hypothesis.settings.load_profile("mutants")
    flags = [
        "-x",
        "-q",
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
        "-m",
        "not slow and not docs and not no_cover",
    ]
    for plugin in ("cacheprovider", "pytest_cov", "xdist"):
        flags += ["-p", f"no:{plugin}"]
    return int(pytest.main([*flags, *tests], plugins=list(plugins)))


class Map:
    """A plugin that notes which lines of the library each test reaches, and how long it takes."""

    def __init__(self) -> None:
        from coverage import Coverage

        self.coverage = Coverage(data_file=None, source_pkgs=["mctsvs"], config_file=False, concurrency=["thread"])
        self.seconds: dict[str, float] = {}
        self.coverage.start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration

    def write(self, path: Path) -> None:
        self.coverage.stop()
        data, reached = self.coverage.get_data(), {}
        for file in data.measured_files():
            if "/mctsvs/" in file:
                lines = data.contexts_by_lineno(file)
                reached["mctsvs/" + file.split("/mctsvs/")[-1]] = {n: [t for t in on if t] for n, on in lines.items()}
        path.write_text(json.dumps({"seconds": self.seconds, "reached": reached}))


def in_child(folder: Path, tests: list[str], limit: float, write: Path | None = None) -> int:
    """Exit status of the tests with the library of a folder, in a process of its own; -1: it ran past the limit."""
    for module in ("hypothesis", "pytest", "scipy.optimize", "scipy.stats"):
        importlib.import_module(module)  # what takes long to load is loaded once, and the forks have it
    child = os.fork()
    if child == 0:
        os.setsid()
        os.chdir(ROOT)
        log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.environ["PYTHONPATH"], os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(folder), str(folder / "hypothesis")
        sys.path.insert(0, str(folder))
        code = 99
        try:
            plugins = [] if write is None else [Map()]
            code = pytest_run(tests, *plugins)
            for plugin in plugins:
                assert write is not None
                plugin.write(write)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    end = time.monotonic() + limit
    status: int | None = None
    while status is None and time.monotonic() < end:
        done, word = os.waitpid(child, os.WNOHANG)
        status = os.waitstatus_to_exitcode(word) if done else None
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if status is None:
        os.waitpid(child, 0)
        return -1
    return status


def library(name: str) -> Path:
    """A copy of the library."""
    folder = MADE / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "src" / "mctsvs", folder / "mctsvs", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def tests_of(mutant: Mutant, known: dict[str, Any]) -> list[str]:
    """The tests that reach the line, or else the file, the fastest first, as many as take half a minute."""
    seconds, lines = known["seconds"], known["reached"].get(mutant.file, {})
    tests = lines.get(str(mutant.line)) or sorted({test for on in lines.values() for test in on})
    chosen: list[str] = []
    total = 0.0
    for test in sorted(tests, key=lambda test: (seconds.get(test, 0.0), test)):
        total += seconds.get(test, 0.0)
        if chosen and total > SECONDS:
            break
        chosen.append(test)
    return chosen


def work(mutants: list[Mutant], name: str, known: dict[str, Any], answers: Any) -> None:
    sys.dont_write_bytecode = True  # two changes may have one length and one second
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    folder = library(name)
    for mutant in mutants:
        began, file = time.monotonic(), folder / mutant.file
        whole = file.read_text()
        tests = tests_of(mutant, known)
        if tests:
            file.write_text(source(mutant))
            # arguments in a file: there may be thousands
            listed = folder / "tests"
            listed.write_text("\n".join(tests))
            limit = STARTING + SLOWER * sum(known["seconds"].get(test, 0.0) for test in tests)
            status = in_child(folder, [f"@{listed}"], limit)
            mutant.result = {0: "survived", -1: "hung"}.get(status, "killed")
            file.write_text(whole)
        else:
            mutant.result = "not reached"
        mutant.seconds = time.monotonic() - began
        answers.put(mutant)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--again", type=Path)
    options = parser.parse_args()
    MADE.mkdir(parents=True, exist_ok=True)
    if options.again:
        kept = [Mutant(**json.loads(line)) for line in options.again.read_text().splitlines()]
        sample = [mutant for mutant in kept if mutant.result in ("survived", "not reached")]
    else:
        sample = random.Random(options.seed).sample(mutants(), options.sample)
    print("which tests reach which lines ...", flush=True)
    path = MADE / "map.json"
    if in_child(library("whole"), [f"tests/{name}" for name in TESTS], 1800.0, path) != 0:
        print(f"the tests fail without any change: {MADE}/whole/log")
        return 2
    known = json.loads(path.read_text())
    answers: Any = multiprocessing.Queue()
    for i in range(options.processes):
        share = sample[i :: options.processes]
        multiprocessing.Process(target=work, args=(share, f"worker-{i}", known, answers), daemon=False).start()
    results = MADE / ("again.jsonl" if options.again else "results.jsonl")
    results.write_text("")
    counts: dict[str, Counter[str]] = {folder: Counter() for folder in CODE}
    for _ in sample:
        mutant = answers.get()
        counts[mutant.folder][mutant.result] += 1
        with results.open("a") as file:
            file.write(json.dumps(asdict(mutant)) + "\n")
        if mutant.result in ("survived", "not reached"):
            print(f"{mutant.result}  {mutant.file}:{mutant.line}  {mutant.text}", flush=True)
    print("\n| package | changes | killed | survived |\n|---|---|---|---|")
    for folder, count in counts.items():
        killed = count["killed"] + count["hung"]
        print(f"| {folder} | {count.total()} | {killed} | {count.total() - killed} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
