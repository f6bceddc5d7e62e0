"""HLO rewrites before the schedule: calls are spliced in, and fusions lose what the host does better."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pytest

import warpsmith as ws
from warpsmith.arrays import Array
from warpsmith.compiler.keys import kernel_key
from warpsmith.hlo.module import HloInstruction, HloModule
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.hlo.verifier import verify_module
from warpsmith.hlo_passes.inline_calls import inline_calls
from warpsmith.hlo_passes.wrap import wrap
from warpsmith.schedule.schedule import make_schedule


def nothing_lacks(_: HloInstruction) -> Collection[str]:
    return ()


def agrees(module: HloModule, rewritten: HloModule, *arrays: Array) -> None:
    """The rewritten module is valid HLO, prints as such, and means the same."""
    verify_module(rewritten)
    assert parse_hlo(str(rewritten)) == rewritten
    for a, b in zip(ws.evaluate(module, *arrays), ws.evaluate(rewritten, *arrays), strict=True):
        np.testing.assert_array_equal(a, b)


CALLS = """HloModule calls
inner {
  p = f32[8] parameter(0)
  ROOT n = f32[8] negate(p)
}
outer {
  a = f32[8] parameter(0)
  b = f32[8] parameter(1)
  c = f32[8] call(a), to_apply=inner
  ROOT t = (f32[8], f32[8]) tuple(c, b)
}
ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] abs(x)
  t = (f32[8], f32[8]) call(y, x), to_apply=outer
  p = f32[8] get-tuple-element(t), index=0
  n = f32[8] call(p), to_apply=inner
  ROOT r = f32[8] add(n, x)
}
"""


def test_calls_become_their_callees_instructions() -> None:
    module = parse_hlo(CALLS)
    inlined = inline_calls(module)
    assert [each.opcode for each in inlined.entry] == [
        *("parameter", "abs", "negate", "tuple", "get-tuple-element", "negate", "add")
    ]
    assert [each.name for each in inlined.computations] == ["e"]
    agrees(module, inlined, np.arange(8, dtype=np.float32))


def test_a_call_of_a_parameter_alone_is_no_instruction() -> None:
    text = """HloModule m
same {
  ROOT p = f32[8] parameter(0)
}
ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] call(x), to_apply=same
  ROOT r = f32[8] negate(y)
}
"""
    module = parse_hlo(text)
    inlined = inline_calls(module)
    assert [each.opcode for each in inlined.entry] == ["parameter", "negate"]
    agrees(module, inlined, np.arange(8, dtype=np.float32))


def test_deep_calls_neither_recurse_nor_explode() -> None:
    """A thousand calls, one in the other, are one computation; thirty that each call the last twice stay calls once
    they are long."""
    lines = ["f0 {\n  p = f32[2] parameter(0)\n  ROOT r = f32[2] negate(p)\n}"]
    lines += [
        f"f{i} {{\n  p = f32[2] parameter(0)\n  ROOT r = f32[2] call(p), to_apply=f{i - 1}\n}}" for i in range(1, 1200)
    ]
    text = (
        "HloModule deep\n"
        + "\n".join(lines)
        + "\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT r = f32[2] call(x), to_apply=f1199\n}\n"
    )
    assert len(inline_calls(parse_hlo(text)).entry) == 2
    lines = ["g0 {\n  p = f32[2] parameter(0)\n  ROOT r = f32[2] negate(p)\n}"]
    lines += [
        f"g{i} {{\n  p = f32[2] parameter(0)\n  a = f32[2] call(p), to_apply=g{i - 1}\n"
        f"  ROOT r = f32[2] call(a), to_apply=g{i - 1}\n}}"
        for i in range(1, 31)
    ]
    text = (
        "HloModule wide\n"
        + "\n".join(lines)
        + "\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT r = f32[2] call(x), to_apply=g30\n}\n"
    )
    inlined = inline_calls(parse_hlo(text))
    assert sum(len(each) for each in inlined.computations) < 1000
    exe = ws.compile(inlined)  # whose steps share the plans inside
    assert len(exe.kernels) < 300


def test_loops_bodies_are_wrapped_too() -> None:
    text = """HloModule m
less {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT
}
next {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[8] get-tuple-element(s), index=1
  y = f32[8] call(x), to_apply=negated
  ROOT t = (s32[], f32[8]) tuple(j, y)
}
ENTRY e {
  x = f32[8] parameter(0)
  i = s32[] constant(0)
  s = (s32[], f32[8]) tuple(i, x)
  ROOT l = (s32[], f32[8]) while(s), condition=less, body=next
}
""".replace("next {", "negated {\n  p = f32[8] parameter(0)\n  ROOT n = f32[8] negate(p)\n}\nnext {", 1)
    module = parse_hlo(text)
    wrapped = wrap(module)
    (loop,) = make_schedule(wrapped).steps
    assert loop.kind == "while"
    assert [[step.kind for step in inner.steps] for inner in loop.inner] == [["kernel"], ["kernel", "kernel"]]
    assert loop.carried == (0, 1)
    agrees(module, wrapped, np.arange(8, dtype=np.float32))


FUSED_DOT = """HloModule m
f {
  x = f32[128,96] parameter(0)
  w = f32[96,64] parameter(1)
  b = f32[64] parameter(2)
  t = f32[128,96] tanh(x)
  d = f32[128,64] dot(t, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  bb = f32[128,64] broadcast(b), dimensions={1}
  ROOT r = f32[128,64] add(d, bb)
}
ENTRY e {
  x = f32[128,96] parameter(0)
  w = f32[96,64] parameter(1)
  b = f32[64] parameter(2)
  ROOT r = f32[128,64] fusion(x, w, b), kind=kOutput, calls=f
}
"""


def rng(*dims: int) -> Array:
    return np.random.default_rng(dims).standard_normal(dims).astype(np.float32)


def test_a_large_product_leaves_its_fusion() -> None:
    """What it needs is one fusion, what needs it another; on a GPU the fusion stays whole."""
    module = parse_hlo(FUSED_DOT)
    wrapped = wrap(module, host=nothing_lacks)
    found = make_schedule(wrapped).steps
    assert [(step.kind, step.instruction.opcode) for step in found] == [
        ("kernel", "fusion"),
        ("host", "dot"),
        ("kernel", "fusion"),
    ]
    assert [each.opcode for each in found[0].instruction.called_computations[0]] == ["parameter", "tanh"]
    assert found[2].instruction.name == "r"
    agrees(module, wrapped, rng(128, 96), rng(96, 64), rng(64))
    assert wrap(module) is module


def test_a_fusion_of_a_product_alone_is_the_product() -> None:
    text = FUSED_DOT.replace("ROOT r = f32[128,64] add(d, bb)", "q = f32[128,64] add(d, bb)").replace(
        "  d = f32[128,64] dot(t, w)", "  ROOT d = f32[128,64] dot(x, w)"
    )
    (only,) = make_schedule(wrap(parse_hlo(text), host=nothing_lacks)).steps
    assert (only.kind, only.instruction.name, only.instruction.opcode) == ("host", "r", "dot")


def test_ops_that_no_emitter_takes_leave_a_fusion_of_several_results() -> None:
    """Results that have nothing to do with the op stay in one fusion."""
    text = """HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
f {
  x = f32[8] parameter(0)
  i = s32[3,1] parameter(1)
  u = f32[3] parameter(2)
  n = f32[8] negate(x)
  s = f32[8] scatter(n, i, u), DIMS, to_apply=add
  m = f32[8] multiply(s, x)
  q = f32[8] abs(x)
  ROOT t = (f32[8], f32[8], f32[8]) tuple(m, s, q)
}
ENTRY e {
  x = f32[8] parameter(0)
  i = s32[3,1] parameter(1)
  u = f32[3] parameter(2)
  ROOT r = (f32[8], f32[8], f32[8]) fusion(x, i, u), kind=kInput, calls=f
}
""".replace(
        "DIMS",
        "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
    )
    module = parse_hlo(text)
    wrapped = wrap(module, host=lambda _: ("scatter",))
    found = make_schedule(wrapped).steps
    assert [(step.kind, step.instruction.opcode) for step in found] == [
        ("kernel", "fusion"),
        ("host", "scatter"),
        ("kernel", "fusion"),
    ]
    assert len(found[2].outputs) == 2
    agrees(module, wrapped, rng(8), np.array([[1], [7], [1]], np.int32), rng(3))


UPDATE = """HloModule m
f {
  c = f32[64,16] parameter(0)
  x = f32[16] parameter(1)
  i = s32[] parameter(2)
  n = f32[16] negate(x)
  r = f32[1,16] bitcast(n)
  z = s32[] constant(0)
  ROOT u = f32[64,16] dynamic-update-slice(c, r, i, z)
}
ENTRY e {
  c = f32[64,16] parameter(0)
  x = f32[16] parameter(1)
  i = s32[] parameter(2)
  d = f32[64,16] add(c, c)
  ROOT u = f32[64,16] fusion(d, x, i), kind=kLoop, calls=f
}
"""


def test_an_update_leaves_its_fusion_where_it_may_write_in_place() -> None:
    module = parse_hlo(UPDATE)
    wrapped = wrap(module, host=nothing_lacks)
    found = make_schedule(wrapped).steps
    assert [(step.kind, step.instruction.opcode, step.in_place) for step in found] == [
        ("kernel", "fusion", False),
        ("kernel", "fusion", False),
        ("host", "dynamic-update-slice", True),
    ]
    agrees(module, wrapped, rng(64, 16), rng(16), np.array(5, np.int32))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("fusion(d, x, i)", "fusion(c, x, i)"),  # the caller's own array
        ("ROOT u = f32[64,16] fusion", "u = f32[64,16] fusion"),  # d is read afterwards
    ],
)
def test_an_update_stays_where_others_need_what_it_would_overwrite(before: str, after: str) -> None:
    text = UPDATE.replace("fusion(d, x, i), kind=kLoop, calls=f", "fusion(d, x, i), kind=kLoop, calls=f\n  #")
    text = text.replace(before, after)
    text = text.replace("  #", "  ROOT v = f32[64,16] add(d, u)" if after.startswith("u") else "")
    steps = make_schedule(wrap(parse_hlo(text), host=nothing_lacks)).steps
    assert not any(step.in_place for step in steps)


def test_fusions_that_differ_in_names_alone_are_one_kernel() -> None:
    text = """HloModule m
f {
  a = f32[8] parameter(0)
  b = f32[8] parameter(1)
  ROOT r = f32[8] OP(a, b)
}
g {
  q = f32[8] parameter(1)
  p = f32[8] parameter(0)
  ROOT s = f32[8] subtract(SIDES)
}
ENTRY e {
  x = f32[8] parameter(0)
  one = f32[8] fusion(x, x), kind=kLoop, calls=f
  ROOT two = f32[8] fusion(one, x), kind=kInput, calls=g
}
"""

    def keys(op: str, sides: str, g: str = "") -> list[object]:
        entry = parse_hlo(
            text.replace("OP", op)
            .replace("SIDES", sides)
            .replace(
                "g {\n  q = f32[8] parameter(1)\n  p = f32[8] parameter(0)",
                "g {\n  p = f32[8] parameter(0)\n  q = f32[8] parameter(1)",
            )
        ).entry
        return [kernel_key(each) for each in entry if each.opcode == "fusion"]

    same = keys("subtract", "p, q")
    assert same[0] == same[1]
    assert len({*keys("subtract", "q, p"), *keys("add", "p, q")}) == 3


def test_equal_kernels_are_compiled_once() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  a = f32[8] negate(x)
  b = f32[8] negate(a)
  c = f32[8] negate(b)
  ROOT r = f32[8] abs(c)
}
"""
    exe = ws.compile(parse_hlo(text))
    assert [each.fusion for each in exe.kernels] == ["a", "b", "c", "r"]
    assert exe.artifact("llvm").count("define void @main(") == 2
    x = np.arange(-4, 4, dtype=np.float32)
    assert (exe(x)[0] == np.abs(x)).all()
