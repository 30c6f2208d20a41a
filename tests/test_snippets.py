"""Every example of the README and the docs is run: no page can show what does not work.

Python blocks of a page run in order and share their names. Commands, in blocks and in the text, run with few
evaluations; those of `bench reproduce` are only read, and so is what a page marks with `<!-- not run: REASON -->` in
front of the block.

A block of the language `output` is what the block in front of it prints, where `...` stands for anything. That block
runs as it stands; every other one runs with few evaluations.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import doctest
import importlib
import io
import itertools
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mctsvs.bench import commands as bench
from mctsvs.cli.commands import parser

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = ROOT / "docs" / "examples.md"  # its outputs are those of whole examples: test_examples.py
STUDY = ("resume", "show", "export", "salvage", "report")  # commands that read studies
SHORT = {
    "run": ["--budget", "4"],
    "resume": ["--budget", "4"],
    "bench run": ["--budget", "4"],
    "bench compare": ["--budget", "4", "--seeds", "2021", "--workers", "1", "-o", "out"],
}
STANDS_FOR = {"S": "2021", "DATA": "data", "DIR": "data", "~/tables": "data"}

# what a page speaks of and does not show
FILES = {
    "docs/own-objective.md": {"path/to/file.py": "def function(p):\n    return p['rate']\n"},
    "docs/problems.md": {"space.toml": "rate = [0.0, 1.0]\nwidth = [-5.0, 5.0]\n"},
    "docs/study.md": {"earlier.csv": ",".join([*(f"x{i}" for i in range(300)), "value"]) + "\n" + "0," * 300 + "1\n"},
}
PRELUDES = {
    "docs/problems.md": "import numpy as np\nx = np.full(30, 0.5)\n",
    "docs/study.md": """
import ray
from distributed import LocalCluster
class client:
    def get_executor():  # only now: the lines before start processes, which is no good beside threads
        global cluster
        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="error")
        cluster = LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None)
        return cluster.get_client().get_executor()
x1, x2 = [0.0] * 300, [1.0] * 300
""",
    "docs/cluster-optuna-postgresql.md": """
import optuna
there = "sqlite:///tuning.db"
begun = optuna.create_study(study_name="chip", storage=there)
""",
}
CLEAN_UP = {"docs/study.md": "study.close()\ncluster.close()\nray.shutdown()"}
ELSEWHERE = {
    "postgresql://USER:PASSWORD@HOST/tuning": "sqlite:///tuning.db",
    'make("NASBench201")': 'make("Levy10_30")',  # without its data
}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    line: int  # its first, counted from 1
    before: str  # the line of text in front of it
    not_run: str  # why not; empty: it is run
    output: str | None = None  # what it prints, where the page shows that

    @property
    def file(self) -> str | None:
        """The file that it shows: named by its first line, or by the sentence in front of it."""
        named = re.match(r"# ([\w/]+\.py)\n", self.text) or re.search(r"[Ii]n `([\w/]+\.py)`.*:$", self.before)
        if self.language == "toml" and not self.text.startswith("[project"):
            return "space.toml"
        return named[1] if named else None


def blocks(page: Path) -> list[Block]:
    """Those of a page, without the ones that are the output of another."""
    text = page.read_text()
    found: list[Block] = []
    for match in re.finditer(r"^( *)```([^`\n]*)\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL):
        above = text[: match.start()].rstrip().rsplit("\n", 1)[-1]
        marked = re.fullmatch(r"<!-- not run: (.*) -->", above)
        body = "".join(line.removeprefix(match[1]) for line in match[3].splitlines(keepends=True))
        line = text.count("\n", 0, match.start()) + 2
        if match[2] == "output":
            assert found, f"{name(page)}:{line}: no block in front of this output"
            assert found[-1].output is None, f"{name(page)}:{line}: a second output of one block"
            found[-1] = replace(found[-1], output=body)
        else:
            found.append(Block(match[2], body, line, above, marked[1] if marked else ""))
    return found


def compare(page: Path, block: Block, printed: str) -> None:
    """What a block prints with what its page shows; `...` stands for anything, as in a doctest."""
    checker, shown = doctest.OutputChecker(), doctest.Example("", block.output or "")
    if not checker.check_output(shown.want, printed, doctest.ELLIPSIS):
        pytest.fail(f"{name(page)}:{block.line}\n{checker.output_difference(shown, printed, doctest.ELLIPSIS)}")


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def prepare(page: Path, folder: Path) -> None:
    """The files that a page shows or speaks of."""
    shown = {block.file: block.text for block in blocks(page) if block.file is not None}
    program = {"simulate": "#!/bin/sh\necho value 1.5\n"}
    for file, text in {**program, **FILES.get(name(page), {}), **shown}.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    (folder / "data").mkdir()


def shortened(text: str, counter: Iterator[int]) -> str:
    """With few evaluations; a study gets a few more at each call, so that each of them has something to do."""
    for there, here in ELSEWHERE.items():
        text = text.replace(there, here)
    return re.sub(r"(budget=|n_trials=|optimize\(\w+, )\d+", lambda match: f"{match[1]}{next(counter)}", text)


PYTHON = [page for page in PAGES if any(block.language == "python" for block in blocks(page))]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of other libraries
@pytest.mark.parametrize("page", PYTHON, ids=name)
def test_python(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MCTSVS_DATA_CHOSEN", raising=False)
    names: dict[str, Any] = {"__name__": "snippets"}
    counter = itertools.count(6, 3)
    skip_if_absent(page)
    exec(PRELUDES.get(name(page), ""), names)
    try:
        for block in blocks(page):
            if block.language != "python":
                continue
            text = block.text if block.output is not None else shortened(block.text, counter)
            code = compile("\n" * (block.line - 1) + text, str(page), "exec")
            if block.not_run:
                check_imports(block.text)
                continue
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(code, names)
            if block.output is not None:
                compare(page, block, printed.getvalue())
    finally:
        exec(CLEAN_UP.get(name(page), ""), names)
    assert len(names) > 1 or all(block.not_run for block in blocks(page) if block.language == "python")


def skip_if_absent(page: Path) -> None:
    """Without the libraries that a page is about; in CI one that is missing is a missing install step."""
    if "CI" in os.environ:
        return
    run = "".join(block.text for block in blocks(page) if block.language == "python" and not block.not_run)
    code = ast.parse(f"{PRELUDES.get(name(page), '')}\n{run}")
    for node in ast.walk(code):
        modules = [node.module] if isinstance(node, ast.ImportFrom) else []
        modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for module in modules:
            pytest.importorskip(str(module).partition(".")[0])
    if "to_dataframe" in run:
        pytest.importorskip("pandas")


def check_imports(text: str) -> None:
    """Of our own, in a block that cannot be run here."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("mctsvs"):
            module = importlib.import_module(str(node.module))
            assert all(hasattr(module, alias.name) for alias in node.names)


class Command(NamedTuple):
    """A command as it is shown."""

    words: tuple[str, ...]
    page: Path
    not_run: str

    @property
    def label(self) -> str:
        return f"{name(self.page)}: {' '.join(self.words)}"

    @property
    def kind(self) -> str:
        """The command: one word, or two such as `bench run`."""
        return " ".join(self.words[: 2 if self.words[0] == "bench" else 1])

    @property
    def arguments(self) -> list[str]:
        return list(self.words[len(self.kind.split()) :])


def lines(block: Block) -> list[str]:
    """The commands of a block."""
    return [line for line in block.text.replace("\\\n", " ").splitlines() if line.startswith("mctsvs ")]


def words_of(line: str) -> list[str]:
    """What the command line gets, without the name of the program."""
    plain = re.sub(r"\[(--[^]]*)\]", r"\1", os.path.expandvars(line.rstrip("&")))  # [--budget 900]: may be given
    plain = re.sub(r" > \S+", "", plain)
    words = shlex.split(re.sub(r"\$\w+", "2", plain), comments=True)[1:]
    return [STANDS_FOR.get(word, word) for word in words]


def commands(page: Path) -> Iterator[Command]:
    """Of the blocks, and of the text between them: there, a name without arguments is only a mention."""
    found = [
        (line, block.not_run)
        for block in blocks(page)
        if block.language != "python" and block.output is None
        for line in lines(block)
    ]
    prose = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    mentioned = re.findall(r"`(mctsvs [^`]+)`", prose)
    found += [(line, "") for line in mentioned if len(line.split()) > (3 if line.startswith("mctsvs bench ") else 2)]
    for line, not_run in found:
        yield Command(tuple(words_of(line)), page, not_run)


COMMANDS = list({command.words: command for page in PAGES for command in commands(page)}.values())
SHOWN = [page for page in PAGES if any(lines(block) and block.output is not None for block in blocks(page))]


@pytest.mark.slow
@pytest.mark.parametrize("page", SHOWN, ids=name)
def test_output_of_commands(page: Path, tmp_path: Path) -> None:
    """Commands whose output a page shows run as they stand, in order, in one folder."""
    prepare(page, tmp_path)
    for block in blocks(page):
        if block.language == "python" or block.output is None:
            continue
        printed = ""
        for line in lines(block):
            result = mctsvs(tmp_path, *words_of(line))
            assert result.returncode == 0, result.stderr
            printed += result.stdout
        compare(page, block, printed)


def test_every_output_is_compared() -> None:
    """With what a Python block or commands print."""
    stray = [
        f"{name(page)}:{block.line}"
        for page in PAGES
        for block in blocks(page)
        if block.output is not None and page != EXAMPLES
        if block.not_run or not (block.language == "python" or lines(block))
    ]
    assert stray == []


@pytest.mark.slow
@pytest.mark.parametrize("command", [c for c in COMMANDS if c.kind != "bench reproduce"], ids=lambda c: c.label)
def test_command(command: Command, tmp_path: Path) -> None:
    kind, words = command.kind, command.arguments
    if command.not_run or "..." in command.label or kind == "watch":  # which serves until Ctrl-C
        parsed(command)
        pytest.skip(f"read, not run: {command.not_run or 'shown in part'}")
    prepare(command.page, tmp_path)
    if kind in STUDY:
        for study in [words[0], *(word for word in words[1:] if kind == "report" and word.endswith(".db"))]:
            own = words[1 : words.index("--budget")] if kind == "resume" and ":" in "".join(words[1:2]) else []
            if own and "--space" not in own and (tmp_path / "space.toml").exists():  # which the study knows by then
                own += ["--space", "space.toml"]
            begin = ["run", *own] if own else ["bench", "run", "Hartmann6_300"]
            began = mctsvs(tmp_path, *begin, "--study", study, "--budget", "3")
            assert began.returncode == 0, began.stderr
    result = mctsvs(tmp_path, *command.words, *SHORT.get(kind, []))
    absent = "is not in" in result.stderr or ("not installed here" in result.stderr and "CI" not in os.environ)
    if result.returncode and absent:
        pytest.skip(result.stderr.strip())
    assert result.returncode == 0, result.stderr
    assert result.stdout


def parsed(command: Command) -> argparse.Namespace:
    first, *words = command.words
    return bench.parser().parse_args(words) if first == "bench" else parser().parse_args([first, *words])


def mctsvs(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mctsvs", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def test_every_reproduction_that_is_shown_can_be_asked_for() -> None:
    shown = [command for command in COMMANDS if command.kind == "bench reproduce"]
    assert len(shown) > 10
    for command in shown:
        bench.wanted(parsed(command))


SCRIPT = re.compile(r"python (benchmarks/\w+\.py)([^`\n#]*)")
SCRIPTS = sorted({match for page in PAGES for match in SCRIPT.findall(page.read_text())})


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted({script for script, _ in SCRIPTS}))
def test_benchmark(script: str) -> None:
    """It starts, and knows the parts and options that pages name."""

    def told(*part: str) -> str:
        result = subprocess.run([sys.executable, script, *part, "--help"], cwd=ROOT, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        return result.stdout

    whole = told()
    for other, rest in SCRIPTS:
        words = shlex.split(rest.rstrip("\\ ")) if other == script else []
        named = words[:1] if words and not words[0].startswith("-") else []
        known = whole
        if named and named[0] in whole and not all(word in whole for word in words if word.startswith("--")):
            known += told(*named)
        for word in [*named, *(word for word in words if word.startswith("--"))]:
            assert word in known or word in ("PART", "..."), f"{script} {rest}"
