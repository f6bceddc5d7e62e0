"""Arguments of calls in a kernel: what the parameters of a macro or a function get, and what doesn't fit them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from warpsmith.errors import InvalidTileProgram, TileSyntaxError
from warpsmith.tile.frontend.names import Names
from warpsmith.tile.frontend.values import Inline

__all__ = ["bind_arguments", "check_arguments"]


def check_arguments(
    name: str, function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> None:
    """InvalidTileProgram for arguments that a function of the kernel language doesn't take."""
    code = getattr(function, "__code__", None)
    if code is None or (len(arguments) == code.co_argcount and not keywords):
        return
    signature = inspect.signature(function)
    try:
        signature.bind(*arguments, **keywords)
    except TypeError as error:
        parameters = ", ".join(signature.parameters)
        raise InvalidTileProgram(f"{name}: {error}", help=f"{name}({parameters})") from error


def bind_arguments(
    evaluate: Callable[[ast.expr], Any],
    macro: Inline,
    names: Names,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
) -> None:
    """Give a macro's parameters their values; `evaluate` gives defaults theirs.  TileSyntaxError for any other."""
    parameters = [each.arg for each in macro.node.args.args]
    if len(arguments) > len(parameters):
        raise TileSyntaxError(f"macro '{macro.node.name}' takes {len(parameters)} arguments, not {len(arguments)}")
    names.own.update(zip(parameters, arguments, strict=False))
    for key, value in keywords.items():
        if key not in parameters:
            raise TileSyntaxError(f"macro '{macro.node.name}' has no parameter '{key}'")
        if key in names.own:
            raise TileSyntaxError(f"macro '{macro.node.name}' gets '{key}' twice")
        names.own[key] = value
    defaults = macro.node.args.defaults
    for name, node in zip(parameters[len(parameters) - len(defaults) :], defaults, strict=True):
        if name not in names.own:
            names.own[name] = evaluate(node)
    missing = [name for name in parameters if name not in names.own]
    if missing:
        raise TileSyntaxError(f"macro '{macro.node.name}' lacks a value for {', '.join(missing)}")
