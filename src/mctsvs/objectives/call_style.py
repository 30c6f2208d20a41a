"""How a user's function takes its variables: all in one argument, or each under its own name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from inspect import Parameter
from typing import Any, Literal

from mctsvs.utils.formatting import listed
from mctsvs.utils.validation import InputError


def call_style(
    function: Callable[..., Any], names: Sequence[str], *, named: bool = True
) -> Literal["argument", "keywords"]:
    """How to call `function` with the values of the variables `names`.

    Args:
        function: The objective.
        names: The names of the variables; a group's values have the group's name.
        named: Whether the user has given the names. A function of the one variable's name then gets its value.

    Returns:
        "argument" for one vector or dict, `def f(x)`. "keywords" for a value under each name, `def f(a, b)` or
        `def f(**values)`. A function with a single positional parameter gets one argument, unless it is called like
        the only variable.

    Raises:
        InputError: The function needs several arguments, and they are not the variables.

    Example:
        >>> call_style(lambda a, b: a + b, ["a", "b"])
        'keywords'
        >>> call_style(lambda x: x["a"] + x["b"], ["a", "b"])
        'argument'
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some functions written in C have no signature
        return "argument"
    open_ended = any(p.kind is Parameter.VAR_KEYWORD for p in parameters)
    single = [p for p in parameters if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    own = [p for p in parameters if p.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)]
    taken = {p.name for p in own}
    needed = [p.name for p in (*single, *own) if p.default is Parameter.empty]
    takes_all = set(needed) <= set(names) and (open_ended or set(names) <= taken)
    alone = named and len(names) == 1
    if takes_all and (open_ended or alone or len(single) != 1 or len(taken) > 1):
        return "keywords"
    if len(set(needed)) > 1:
        raise InputError(
            f"the function takes {listed(list(dict.fromkeys(needed)))}, and the variables are {listed(list(names))}: "
            f"give it one parameter for each variable, or one for all of them"
        )
    return "argument"
