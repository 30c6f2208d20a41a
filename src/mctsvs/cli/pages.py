"""`mctsvs report` and `mctsvs watch`: what a study has learned, as a page."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from mctsvs.cli.arguments import whole
from mctsvs.study import Study
from mctsvs.utils.validation import InputError


def add_commands(commands: Any) -> None:
    command = commands.add_parser(
        "report",
        help="write what studies have learned as one page for a browser",
        description="Write what a study has learned as one page that any browser opens, without a network; several are "
        "compared.",
    )
    command.add_argument("studies", nargs="+", type=Path, metavar="FILE", help="a study; several are compared")
    command.add_argument("-o", "--output", type=Path, metavar="PAGE", help="default: the first study's name with .html")
    command.set_defaults(command=report)
    command = commands.add_parser(
        "watch",
        help="show studies on a page that follows them while they run",
        description="Show studies on a page that follows them while they run. The files are only read, and the page is "
        "for this machine alone; for other machines, name a --host and use the address with the token that is printed.",
    )
    command.add_argument("studies", nargs="+", type=Path, metavar="FILE", help="a study, or a folder with studies")
    command.add_argument("--port", type=whole, default=8765, metavar="N", help="default: %(default)s; 0: any free one")
    command.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="default: %(default)s, this machine")
    command.set_defaults(command=watch)


def report(arguments: argparse.Namespace) -> int:
    from mctsvs.visualization.report import write

    page = arguments.output or arguments.studies[0].with_suffix(".html")
    if page.suffix == ".db" or page in arguments.studies:
        raise InputError(f"the page cannot be {str(page)!r}, which is a study's name: give -o report.html")
    with ExitStack() as opened:
        studies = [opened.enter_context(Study(path, readonly=True)) for path in arguments.studies]
        write(studies if len(studies) > 1 else studies[0], page)
    print(f"{page} ({page.stat().st_size / 1e6:.1f} MB): open it in a browser")
    return 0


def watch(arguments: argparse.Namespace) -> int:
    from mctsvs.visualization.dashboard import serve

    serve(arguments.studies, arguments.host, arguments.port, lambda text: print(text, flush=True))
    return 0
