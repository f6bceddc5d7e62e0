"""The in-place dynamic-update-slice emitter: only the update is written, results as the interpreter's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differential import check_passes
from hero_kernels import analysis_of, assembled, body, case, emitted, ids_of, launched, rows_of
from indexing.bijection import is_bijection_onto
from kernel_runner import check
from needs import needs_ptxas

import warpsmith as ws
from warpsmith.emitters.gpu import dynamic_update_slice


@pytest.mark.parametrize("row", rows_of("dynamic_update_slice"), ids=ids_of)
def test_launch_is_xlas(row: dict[str, Any]) -> None:
    """Wrong: the shape that the launch runs over, or the unroll factor."""
    found, _ = launched(row)
    assert found == {key: row[key] for key in found}


SIMPLE = """
    x = f32[20,30] parameter(0)
    u = f32[5,6] parameter(1)
    i = s32[] parameter(2)
    j = s32[] parameter(3)
    ROOT r = f32[20,30] dynamic-update-slice(x, u, i, j)"""
FUSIONS = {
    "simple": (SIMPLE, ((2, 20), (3, 30))),
    "update computed": (
        """
        x = bf16[300] parameter(0)
        u = bf16[70] parameter(1)
        i = u32[] parameter(2)
        e = bf16[70] negate(u)
        ROOT r = bf16[300] dynamic-update-slice(x, e, i)""",
        ((2, 300),),
    ),
    "start computed": (
        """
        x = s16[40,3] parameter(0)
        u = s16[9,3] parameter(1)
        i = s32[] parameter(2)
        one = s32[] constant(1)
        k = s32[] add(i, one)
        ROOT r = s16[40,3] dynamic-update-slice(x, u, k, i)""",
        ((2, 40),),
    ),
    "narrow unsigned start": (SIMPLE.replace("s32", "u8"), ((2, 20), (3, 30))),
    "wide start": (SIMPLE.replace("s32", "s64"), ((2, 20), (3, 30))),
    "whole dimension": (
        """
        x = f64[20,30] parameter(0)
        u = f64[20,4] parameter(1)
        i = s32[] parameter(2)
        j = s32[] parameter(3)
        ROOT r = f64[20,30] dynamic-update-slice(x, u, i, j)""",
        ((2, 20), (3, 30)),
    ),
    "bitcast": (
        SIMPLE.replace("ROOT r", "d") + "\n ROOT r = f32[600] bitcast(d)",
        ((2, 20), (3, 30)),
    ),
    "two roots": (
        """
        x = f32[20,30] parameter(0)
        y = f32[40,10] parameter(1)
        u = f32[8,8] parameter(2)
        i = s32[] parameter(3)
        n = f32[8,8] negate(u)
        a = f32[20,30] dynamic-update-slice(x, u, i, i)
        b = f32[40,10] dynamic-update-slice(y, n, i, i)
        ROOT r = (f32[20,30], f32[40,10]) tuple(a, b)""",
        ((3, 20),),
    ),
    "update of what was there": (
        """
        x = f32[20,30] parameter(0)
        u = f32[5,6] parameter(1)
        i = s32[] parameter(2)
        s = f32[5,6] dynamic-slice(x, i, i), dynamic_slice_sizes={5,6}
        a = f32[5,6] add(s, u)
        ROOT r = f32[20,30] dynamic-update-slice(x, a, i, i)""",
        ((2, 20),),
    ),
    "four bits": (SIMPLE.replace("f32", "s4"), ((2, 20), (3, 30))),
    "complex": (SIMPLE.replace("f32", "c64"), ((2, 20), (3, 30))),
    "layout": (SIMPLE.replace("f32[20,30]", "f32[20,30]{0,1}"), ((2, 20), (3, 30))),
}


@pytest.mark.parametrize("name", FUSIONS)
def test_every_pass_keeps_the_interpreters_results(name: str) -> None:
    """Wrong: a start's clamp, the place of the update, or what the buffer held elsewhere."""
    text, indices = FUSIONS[name]
    kernel = emitted(text)
    assert (kernel.origin.emitter, kernel.aliases[0]) == ("dynamic_update_slice", (0, 0))
    check_passes(case(name, text, indices=indices), "sm_90")


def test_only_the_update_is_read_and_written() -> None:
    """Threads run over the update; the buffer's own input is no longer known to be unwritten."""
    kernel = emitted(SIMPLE)
    assert (kernel.launch.grid, kernel.launch.block) == ((1, 1, 1), (30, 1, 1))
    text = str(kernel.module)
    assert text.count("xla.invariant") == 3
    map = dynamic_update_slice.thread_to_input(analysis_of(SIMPLE), dynamic_update_slice.launch(analysis_of(SIMPLE)))
    assert is_bijection_onto(map, (5, 6))


def test_a_buffer_read_elsewhere_is_not_updated_in_place() -> None:
    """The loop emitter writes all of a new buffer."""
    text = SIMPLE.replace("ROOT r", "d").replace("dynamic-update-slice(x", "dynamic-update-slice(x") + (
        "\n s = f32[20,30] reverse(x), dimensions={0}\n ROOT r = (f32[20,30], f32[20,30]) tuple(d, s)"
    )
    assert emitted(text).origin.emitter == "loop"
    check(body(text))


@needs_ptxas
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
def test_ptxas_takes_the_ptx(target: str) -> None:
    """Both arguments are in the signature; the buffer isn't read through the read-only path."""
    ptx, _ = assembled(FUSIONS["update of what was there"][0], target)
    assert ptx.count(".param .u64") >= 4
    assert "ld.global.b32" in ptx or "ld.global.f32" in ptx


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_a_result_of_another_layout_is_no_update_in_place(target: str) -> None:
    """What isn't updated must move to its new place as well."""
    module = ws.parse_hlo(
        "HloModule m\nENTRY e { x = s64[2,3,4]{1,2,0} parameter(0) u = s64[2,3,1]{1,0,2} parameter(1) "
        "i = s8[] parameter(2) ROOT r = s64[2,3,4]{2,1,0} dynamic-update-slice(x, u, i, i, i) }"
    )
    x, u, i = np.arange(24).reshape(2, 3, 4), np.full((2, 3, 1), 100), np.int8(0)
    (expected,) = ws.evaluate(module, x, u, i)
    found = ws.compile(module, cache=False)(x, u, i) if target == "cpu" else ws.simulate(module, x, u, i).outputs
    np.testing.assert_array_equal(found[0], expected)
