"""`mctsvs completion SHELL`: the script that lets a shell complete commands, options, methods, problems and files.

shtab makes it from the argument parser, for every shell and with the help texts. The script is static: the Tab key
waits for nothing, and shtab is needed only where it is made.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from mctsvs.methods import registry
from mctsvs.utils.validation import InputError

SHELLS = ("bash", "zsh", "fish")
HOW = """\
bash:  mctsvs completion bash > ~/.local/share/bash-completion/completions/mctsvs
zsh:   mctsvs completion zsh > DIR/_mctsvs           DIR being one of the folders in $fpath
fish:  mctsvs completion fish > ~/.config/fish/completions/mctsvs.fish"""


def add_command(commands: Any) -> None:
    command = commands.add_parser(
        "completion",
        help="print what your shell needs to complete commands",
        description="Print what your shell needs to complete commands, options and names.",
        epilog=HOW,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))
    command.set_defaults(command=show)


def show(arguments: argparse.Namespace) -> int:
    """`mctsvs completion SHELL`."""
    from mctsvs.cli.commands import parser

    bench = import_module("mctsvs.bench.commands")
    top = parser()
    _subparsers(top).choices["bench"] = bench.parser()
    print(script(arguments.shell, top, {"method": list(registry.METHODS), "problem": bench.examples()}))
    return 0


def script(shell: str, top: argparse.ArgumentParser, names: Mapping[str, list[str]]) -> str:
    """The script for the shell; `names` are the words that arguments of these names can be."""
    try:
        import shtab
    except ImportError:
        raise InputError("shtab makes the script, and is not installed: pip install 'mctsvs[completion]'") from None
    for command in _commands(top):
        for action in command._actions:
            if action.dest in names:
                action.choices = names[action.dest]  # only to complete: this parser parses nothing
            elif action.choices is None and action.nargs != 0:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    return str(shtab.complete(top, shell))


def _subparsers(top: argparse.ArgumentParser) -> Any:
    return next((action for action in top._actions if isinstance(action, argparse._SubParsersAction)), None)


def _commands(top: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """All commands, those of groups too."""
    found = _subparsers(top)
    return [top] if found is None else [command for sub in found.choices.values() for command in _commands(sub)]
