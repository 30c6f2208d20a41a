"""What a study has learned, as `mctsvs show` prints it: the table of importance and the tree of variables."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from mctsvs.cli.summary import as_short_text
from mctsvs.progress.screen import bar
from mctsvs.study import Study
from mctsvs.study.text import printable
from mctsvs.tree import Node

ROWS = 20  # variables of the table
NODES = 40  # of the tree
LEAST = 0.005  # score that is shown


def show(study: Study, importance: Mapping[str, float]) -> None:
    """Table and tree, as wide as the terminal."""
    console, tree = Console(width=None if sys.stdout.isatty() else 120), study.tree
    console.print()
    console.print(table(importance, study.best.params, console.width))
    if tree is not None:
        console.print()
        console.print(branches(tree, study.space.names))


def table(importance: Mapping[str, float], best: Mapping[str, Any], width: int) -> Table:
    """The variables that matter most: score, the same as a bar, value at the best point."""
    shown = [name for name, score in importance.items() if score >= LEAST][:ROWS]
    rows = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    rows.add_column("variable", max_width=max(12, width // 3), no_wrap=True, overflow="ellipsis")
    rows.add_column("importance", justify="right", no_wrap=True)
    rows.add_column("", no_wrap=True)
    rows.add_column("at the best point", no_wrap=True, overflow="ellipsis")
    for name in shown:
        score = importance[name]
        value = as_short_text(best[name]) if name in best else "-"
        drawn = bar(score, max(4, min(30, width // 4)))
        rows.add_row(Text(printable(name)), f"{score:.3f}", Text(drawn, style="cyan"), Text(printable(value)))
    rest = len(importance) - len(shown)
    if rest:
        rows.add_row(Text(f"{rest} more" if shown else "nothing is known yet", style="dim"))
    return rows


def branches(root: Node, names: Sequence[str]) -> Tree:
    """The tree of groups of variables, left before right; of a very large one the upper part."""
    drawn = Tree(_label(root, names), guide_style="dim")
    ahead, left = [(root, drawn)], NODES
    while ahead:
        node, branch = ahead.pop(0)
        for child in node.children or ():
            if left == 0:
                branch.add(Text("...", style="dim"))
                break
            left -= 1
            ahead.append((child, branch.add(_label(child, names))))
    return drawn


def _label(node: Node, names: Sequence[str]) -> Text:
    return Text(printable(node.line(names)), no_wrap=True, overflow="ellipsis")
