"""Figures of results, and the pages of the paper's experiments, made of their numbers when the site is built.

    build/figures/NAME.png      of benchmarks/drawings.py and docs/pictures/isotropic.py
    docs/results/paper/NAME.md  of the numbers beside it, as `mctsvs bench reproduce NAME --pages` makes it

What is newer than its numbers, and than the code that draws it, is left alone, so a second build is quick.
"""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "build" / "figures"


def newest(paths: Iterable[Path]) -> float:
    return max(path.stat().st_mtime for path in paths)


def stale(made: Path, sources: Iterable[Path]) -> bool:
    """Whether a file is not there, or older than one of those it is made of."""
    return not made.exists() or made.stat().st_mtime < newest(sources)


def make(app: Any) -> None:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import drawings
    from mctsvs.bench import figures, styles

    docs = Path(app.srcdir)
    drawers = [Path(str(module.__file__)) for module in (drawings, figures, styles)]
    FIGURES.mkdir(parents=True, exist_ok=True)
    for name, draw in drawings.DRAWINGS.items():
        if stale(FIGURES / f"{name}.png", [*(docs / "results" / "tables").glob("*.csv"), *drawers]):
            draw(FIGURES / name)
    picture = docs / "pictures" / "isotropic.py"
    if stale(FIGURES / "isotropic.png", [picture]):
        runpy.run_path(str(picture))["main"](FIGURES / "isotropic")
    make_pages(docs / "results" / "paper", drawers)


def make_pages(folder: Path, drawers: list[Path]) -> None:
    from mctsvs.bench import paper
    from mctsvs.bench.paper import reproduce
    from mctsvs.bench.paper.experiments import ENTRIES

    code = [*drawers, *Path(str(paper.__file__)).parent.glob("*.py")]
    for name, entry in ENTRIES.items():
        if stale(folder / f"{name}.md", [*folder.glob(f"{name}.csv"), *folder.glob(f"{name}-paper.csv"), *code]):
            result = reproduce.ReproductionResult()
            reproduce.page_of(entry, folder, result)
            assert not result.notes, result.notes  # no figure


def link_experiments(app: Any, name: str, source: list[str]) -> None:
    """On the page of the paper, names of experiments in tables lead to their pages, which a repository lacks."""
    if name == "results/paper":
        pages = "|".join(path.stem for path in (Path(app.srcdir) / "results" / "paper").glob("*.md"))
        rows = [re.sub(rf"`({pages})`", r"[`\1`](paper/\1.md)", line) for line in source[0].splitlines()]
        pairs = zip(source[0].splitlines(), rows, strict=True)
        source[0] = "\n".join(row if line.startswith("|") else line for line, row in pairs)


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", make)
    app.connect("source-read", link_experiments)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
