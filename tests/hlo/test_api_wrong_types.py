"""Python's own mistakes: a wrong type in a call is an error of ours that says what to give instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

import warpsmith as ws
from warpsmith.errors import ArgumentMismatch, UsageError

TEXT = "HloModule m\nENTRY e {\n  x = f32[3] parameter(0)\n  ROOT r = f32[3] tanh(x)\n}\n"
X = np.ones(3, np.float32)
ANY: Any = None
MODULE = ws.parse_hlo(TEXT)
MASKED = np.ma.MaskedArray(X, mask=[False, True, False])


def _run(**options: Any) -> Any:
    return ws.run(MODULE, X, cache=False, measure_copy=False, **{"iterations": 1, **options})


CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "parse a number": (lambda: ws.parse_hlo(cast("str", 5)), "takes HLO text, not int"),
    "parse bytes": (lambda: ws.parse_hlo(cast("str", TEXT.encode())), "takes HLO text, not bytes"),
    "evaluate text": (lambda: ws.evaluate(cast("ws.HloModule", TEXT), X), "a module is wanted, not str"),
    "compile text": (lambda: ws.compile(cast("ws.HloModule", TEXT)), "a module is wanted, not str"),
    "run text": (lambda: ws.run(cast("ws.HloModule", TEXT), X), "a module is wanted, not str"),
    "no numerics": (lambda: ws.compile(MODULE, numerics=ANY), "a numerics mode is a name, not NoneType"),
    "no target": (lambda: ws.compile(MODULE, target=ANY), "a target is a device's name, not NoneType"),
    "negative tolerance": (lambda: _run(abs_error=-1.0), "abs_error is -1.0"),
    "NaN tolerance": (lambda: _run(rel_error=float("nan")), "rel_error is nan"),
    "no iterations": (lambda: _run(iterations=0), "iterations is 0"),
    "half an iteration": (lambda: _run(iterations=1.5), "iterations is 1.5"),
    "no steps": (lambda: _run(step_limit=0), "step_limit is 0"),
    "a seed of letters": (lambda: _run(seed="a"), "a seed is a whole number, not str"),
    "out of None": (lambda: ws.compile(MODULE)(X, out=[ANY]), "`out` holds numpy arrays, not NoneType"),
    "out of a number": (lambda: ws.compile(MODULE)(X, out=cast("Any", 5)), "`out` is an array, or one an output"),
    "donate a letter": (lambda: ws.compile(MODULE)(X, donate=cast("Any", "a")), "`donate` is True, or numbers"),
}

ARGUMENTS: dict[str, tuple[tuple[Any, ...], str]] = {
    "too few": ((), "takes 1 arrays"),
    "too many": ((X, X), "takes 1 arrays"),
    "another shape": ((np.ones(4, np.float32),), "float32[4]"),
    "another type": ((np.ones(3),), "float64[3]"),
    "a ragged list": (([[1], [2, 3]],), "array"),
    "an object": ((object(),), "array"),
    "a masked array": ((MASKED,), "mask"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_type_is_an_error_that_teaches(name: str) -> None:
    call, message = CALLS[name]
    with pytest.raises(UsageError) as raised:
        call()
    assert message in str(raised.value)


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("caller", ["evaluate", "executable"])
def test_arguments_that_do_not_fit_are_refused(caller: str, name: str) -> None:
    arrays, message = ARGUMENTS[name]
    call = ws.compile(MODULE) if caller == "executable" else lambda *given: ws.evaluate(MODULE, *given)
    with pytest.raises(ArgumentMismatch) as raised:
        call(*arrays)
    assert message in str(raised.value)


def test_a_loop_without_end_names_the_way_out() -> None:
    text = """HloModule m
    c { p = s32[] parameter(0)  ROOT t = pred[] constant(true) }
    b { p = s32[] parameter(0)  ROOT r = s32[] add(p, p) }
    ENTRY e { x = s32[] parameter(0)  ROOT w = s32[] while(x), condition=c, body=b }"""
    with pytest.raises(ws.WarpsmithError, match=r"step_limit=, or --step-limit"):
        ws.evaluate(ws.parse_hlo(text), np.int32(1), step_limit=5000)


def test_a_comment_among_dimensions_is_named() -> None:
    """The dimension after it isn't what is wrong."""
    with pytest.raises(ws.WarpsmithError, match="a comment can't stand among") as raised:
        ws.parse_hlo(TEXT.replace("x = f32[3]", "x = f32[/* n */3]"))
    assert raised.value.span is not None
    assert raised.value.span.column == 11
    with pytest.raises(ws.WarpsmithError, match="a comment can't stand in a layout") as raised:
        ws.parse_hlo(TEXT.replace("x = f32[3]", "x = f32[3]{0/* minor */}"))
    assert raised.value.span is not None
    assert raised.value.span.column == 15
