"""What a problem needs that may not be installed."""

from __future__ import annotations

import importlib.util

from mctsvs.common import InputError


def require(problem: str, extra: str, *modules: str) -> None:
    """Raises `InputError` with the command that installs what is missing."""
    absent = [module for module in modules if importlib.util.find_spec(module) is None]
    if absent:
        raise InputError(
            f"problem {problem!r} needs {' and '.join(absent)}, not installed here: pip install 'mctsvs[{extra}]'"
        )
