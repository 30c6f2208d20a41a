"""Every example of the README and the docs is run, in a short form: no page can show what does not work.

Python blocks of a page run in order and share their names. Commands, in blocks and in the text, run with few
evaluations; those of `reproduce` are only read, and so is what a page marks with `<!-- not run: REASON -->` in front
of the block.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mctsvs.bench import commands as lab
from mctsvs.cli.commands import parser

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
STUDY = ("resume", "show", "export", "salvage", "report")  # commands that read studies
SHORT = {
    "run": ["--budget", "4"],
    "resume": ["--budget", "4"],
    "compare": ["--budget", "4", "--seeds", "2021", "--workers", "1", "-o", "out"],
}
STANDS_FOR = {"S": "2021", "DATA": "data", "DIR": "data", "~/tables": "data"}

# what a page speaks of and does not show
FILES = {
    "README.md": {"tune.py": "def train(p):\n    return p['a'] * p['b']\n"},
    "docs/start.md": {"tune.py": "def train(p):\n    return p['a'] * p['b']\n"},
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
there = "sqlite:///file:tuning?mode=memory&cache=shared&uri=true"
begun = optuna.create_study(study_name="chip", storage=there)
""",
}
CLEAN_UP = {"docs/study.md": "study.close()\ncluster.close()\nray.shutdown()"}
ELSEWHERE = {
    "postgresql://USER:PASSWORD@HOST/tuning": "sqlite:///file:tuning?mode=memory&cache=shared&uri=true",
    'make("NASBench201")': 'make("Levy10_30")',  # without its data
}


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    text: str
    line: int  # its first, counted from 1
    before: str  # the line of text in front of it
    not_run: str  # why not; empty: it is run

    @property
    def file(self) -> str | None:
        """The file that it shows: named by its first line, or by the sentence in front of it."""
        named = re.match(r"# ([\w/]+\.py)\n", self.text) or re.search(r"[Ii]n `([\w/]+\.py)`.*:$", self.before)
        if self.language == "toml" and not self.text.startswith("[project"):
            return "space.toml"
        return named[1] if named else None


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    found = []
    for match in re.finditer(r"^( *)```(\w*)\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL):
        above = text[: match.start()].rstrip().rsplit("\n", 1)[-1]
        marked = re.fullmatch(r"<!-- not run: (.*) -->", above)
        body = "".join(line.removeprefix(match[1]) for line in match[3].splitlines(keepends=True))
        line = text.count("\n", 0, match.start()) + 2
        found.append(Block(match[2], body, line, above, marked[1] if marked else ""))
    return found


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
            code = compile("\n" * (block.line - 1) + shortened(block.text, counter), str(page), "exec")
            if block.not_run:
                check_imports(block.text)
            else:
                exec(code, names)
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


def commands(page: Path) -> Iterator[Command]:
    """Of the blocks, and of the text between them: there, a name without arguments is only a mention."""
    found = [
        (line, block.not_run)
        for block in blocks(page)
        if block.language != "python"
        for line in block.text.replace("\\\n", " ").splitlines()
        if line.startswith("mctsvs ")
    ]
    prose = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    found += [(line, "") for line in re.findall(r"`(mctsvs [^`]+)`", prose) if len(line.split()) > 2]
    for line, not_run in found:
        plain = re.sub(r"\[(--[^]]*)\]", r"\1", os.path.expandvars(line.rstrip("&")))  # [--budget 900]: may be given
        plain = re.sub(r" > \S+", "", plain)
        words = shlex.split(re.sub(r"\$\w+", "2", plain), comments=True)[1:]
        yield Command(tuple(STANDS_FOR.get(word, word) for word in words), page, not_run)


COMMANDS = list({command.words: command for page in PAGES for command in commands(page)}.values())


@pytest.mark.slow
@pytest.mark.parametrize("command", [c for c in COMMANDS if c.words[0] != "reproduce"], ids=lambda c: c.label)
def test_command(command: Command, tmp_path: Path) -> None:
    kind, *words = command.words
    if command.not_run or "..." in command.label or kind == "watch":  # which serves until Ctrl-C
        parser().parse_args([kind, *words])
        pytest.skip(f"read, not run: {command.not_run or 'shown in part'}")
    prepare(command.page, tmp_path)
    if kind in STUDY:
        for study in [words[0], *(word for word in words[1:] if kind == "report" and word.endswith(".db"))]:
            own = words[1 : words.index("--budget")] if kind == "resume" and ":" in "".join(words[1:2]) else []
            if own and "--space" not in own and (tmp_path / "space.toml").exists():  # which the study knows by then
                own += ["--space", "space.toml"]
            began = mctsvs(tmp_path, "run", *(own or ["Hartmann6_300"]), "--study", study, "--budget", "3")
            assert began.returncode == 0, began.stderr
    result = mctsvs(tmp_path, kind, *words, *SHORT.get(kind, []))
    absent = "is not in" in result.stderr or ("not installed here" in result.stderr and "CI" not in os.environ)
    if result.returncode and absent:
        pytest.skip(result.stderr.strip())
    assert result.returncode == 0, result.stderr
    assert result.stdout


def mctsvs(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mctsvs", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def test_every_reproduction_that_is_shown_can_be_asked_for() -> None:
    shown = [command for command in COMMANDS if command.words[0] == "reproduce"]
    assert len(shown) > 20
    for command in shown:
        arguments = parser().parse_args(list(command.words))
        lab.wanted(arguments)


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
