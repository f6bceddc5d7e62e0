"""The verifier refuses HLO whose shapes, types or signatures don't fit, and says where and why."""

from __future__ import annotations

import pytest

from warpsmith.errors import InvalidHlo
from warpsmith.hlo import parse_hlo
from warpsmith.hlo.builder import ComputationBuilder, build_module, reducer
from warpsmith.hlo.module import HloModule
from warpsmith.hlo.shapes import array
from warpsmith.hlo.verifier import verify_module

BEFORE = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
pick {
  a = f32[] parameter(0)  i = s32[] parameter(1)  b = f32[] parameter(2)  j = s32[] parameter(3)
  ROOT t = (f32[], s32[]) tuple(a, i)
}
body { a = f32[2,3] parameter(0)  ROOT r = f32[2,3] negate(a) }
cond { a = f32[2,3] parameter(0)  ROOT r = pred[] constant(false) }
"""
OPERANDS = [
    "p = f32[2,3] parameter(0)",
    "n = s32[2,3] parameter(1)",
    "i = s32[] parameter(2)",
    "z = f32[] constant(0)",
    "m = pred[2,3] parameter(3)",
    "k = c64[2] parameter(4)",
    "t = (f32[2,3], s32[]) tuple(p, i)",
]


def module(line: str) -> HloModule:
    text = "HloModule m\n" + BEFORE + "ENTRY e {\n  " + "\n  ".join([*OPERANDS, line]) + "\n}\n"
    return parse_hlo(text, "v.hlo")


GOOD = [
    "x = f32[2,3] add(p, p)",
    "x = f32[2,3]{0,1} add(p, p)",
    "x = pred[2,3] compare(p, p), direction=LT",
    "x = c64[2,3] complex(p, p)",
    "x = f32[2] abs(k)",
    "x = f32[2,3] select(m, p, p)",
    "x = f32[2,3] clamp(z, p, z)",
    "x = bf16[2,3] convert(n)",
    "x = f32[2,5,3] broadcast(p), dimensions={0,2}",
    "x = f32[3,2] reshape(p)",
    "x = f32[3,2] transpose(p), dimensions={1,0}",
    "x = f32[1,2] slice(p), slice={[1:2], [0:3:2]}",
    "x = f32[2,3] reverse(p), dimensions={1}",
    "x = f32[4,3] pad(p, z), padding=1_0_1x0_0",
    "x = f32[2,1] pad(p, z), padding=0_0x-1_-1",
    "x = f32[4,3] concatenate(p, p), dimensions={0}",
    "x = s8[4] iota(), iota_dimension=0",
    "x = f32[3] reduce(p, z), dimensions={0}, to_apply=add",
    "x = (f32[], s32[]) reduce(p, n, z, i), dimensions={1,0}, to_apply=pick",
    "x = f32[2,2] reduce-window(p, z), window={size=1x2}, to_apply=add",
    "x = f32[3,3] reduce-window(p, z), window={size=2x3 stride=1x1 pad=1_1x1_1}, to_apply=add",
    "x = f32[1,3] dynamic-slice(p, i, i), dynamic_slice_sizes={1,3}",
    "x = f32[2,3] dynamic-update-slice(p, p, i, i)",
    "x = f32[2,2] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
    "x = f32[2] dot(p, p), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1}",
    "x = u8[2,3,4] bitcast-convert(p)",
    "x = f32[3,2]{0,1} bitcast(p)",
    "x = f32[2,3] fusion(p), kind=kLoop, calls=body",
    "x = f32[2,3] while(p), condition=cond, body=body",
    "x = s32[] get-tuple-element(t), index=1",
]


@pytest.mark.parametrize("line", GOOD)
def test_hlo_that_fits_passes(line: str) -> None:
    verify_module(module(line))


BAD = [
    ("x = f32[3,2] add(p, p)", "needs the same sizes"),
    ("x = f32[2,3] add(p, z)", "needs the same sizes"),
    ("x = f32[2,3] add(p, n)", "different types, f32 and s32"),
    ("x = f64[2,3] add(p, p)", "makes f32, not f64"),
    ("x = f32[2,3] compare(p, p), direction=LT", "makes pred, not f32"),
    ("x = s32[2,3] tanh(n)", "tanh takes floats"),
    ("x = f32[2,3] and(p, p)", "and takes integers or pred"),
    ("x = pred[2,3] subtract(m, m)", "subtract takes numbers"),
    ("x = s32[2,3] complex(n, n)", "complex takes floats"),
    ("x = f32[2,3] not(p)", "not takes integers or pred"),
    ("x = f32[2,3] add(t, t)", "not an array"),
    ("x = f32[2,3] select(p, p, p)", "not pred"),
    ("x = s32[2,3] select(m, p, p)", "select makes s32[2,3] but"),
    ("x = f32[2,3] clamp(i, p, z)", "lower bound is s32[]"),
    ("x = f32[2,5,3] broadcast(p), dimensions={0,1}", "result dimension 1, which it becomes, has 5"),
    ("x = f32[2,5,3] broadcast(p), dimensions={0}", "dimensions names 1 dimensions, the operand has 2"),
    ("x = f32[2,3] broadcast(p), dimensions={0,2}", "names dimension 2 of an array of rank 2"),
    ("x = f32[2,3] broadcast(p), dimensions={1,1}", "names a dimension twice"),
    ("x = f32[4,2] reshape(p)", "8 elements of 6"),
    ("x = s32[6] reshape(p)", "makes f32, not s32"),
    ("x = f32[2,3] transpose(p), dimensions={1,0}", "makes sizes [3,2]"),
    ("x = f32[3] transpose(p), dimensions={1}", "names 1 of 2 dimensions"),
    ("x = f32[1,3] slice(p), slice={[1:3], [0:3]}", "doesn't lie in dimension 0 of size 2"),
    ("x = f32[1,3] slice(p), slice={[1:2]}", "1 ranges for an array of rank 2"),
    ("x = f32[2,3] slice(p), slice={[1:2], [0:3]}", "makes sizes [1,3]"),
    ("x = f32[1,3] slice(p), slice={[1:2:0], [0:3]}", "stride of dimension 0 is 0"),
    ("x = f32[2,3] reverse(p), dimensions={2}", "names dimension 2"),
    ("x = f32[4,3] pad(p, z), padding=1_0x0_0", "makes sizes [3,3]"),
    ("x = f32[4,3] pad(p, i), padding=1_1x0_0", "not a scalar of f32"),
    ("x = f32[0,3] pad(p, z), padding=-3_0x0_0", "leaves dimension 0 with size -1"),
    ("x = f32[4,3] pad(p, z), padding=1_1", "padding has 1 dimensions"),
    ("x = f32[4,3] concatenate(p, p), dimensions={1}", "makes sizes [2,6]"),
    ("x = f32[2,3] concatenate(p, z), dimensions={0}", "doesn't line up"),
    ("x = s32[3] iota(), iota_dimension=1", "iota_dimension is 1"),
    ("x = pred[3] iota(), iota_dimension=0", "iota can't make pred"),
    ("x = f32[2] reduce(p, z), dimensions={0}, to_apply=add", "reduce makes f32[3] here"),
    ("x = f32[3] reduce(p, i), dimensions={0}, to_apply=add", "initial value 0 is s32"),
    ("x = f32[3] reduce(p, p), dimensions={0}, to_apply=add", "not a scalar"),
    ("x = f32[3] reduce(p, z), dimensions={0}, to_apply=body", "needs a function of 2"),
    ("x = f32[3] reduce(p, z), dimensions={0,0}, to_apply=add", "names a dimension twice"),
    ("x = f32[2,3] reduce-window(p, z), window={size=1x2}, to_apply=add", "reduce-window makes f32[2,2]"),
    ("x = f32[2,3] reduce-window(p, z), window={size=1}, to_apply=add", "the window has 1 dimensions"),
    ("x = f32[1,4] dynamic-slice(p, i, i), dynamic_slice_sizes={1,4}", "slice size 4 doesn't fit"),
    ("x = f32[1,3] dynamic-slice(p, i), dynamic_slice_sizes={1,3}", "needs 2 start indices, 1 are given"),
    ("x = f32[1,3] dynamic-slice(p, i, z), dynamic_slice_sizes={1,3}", "not an integer scalar"),
    ("x = f32[2,3] dynamic-update-slice(p, z, i, i)", "doesn't fit into f32[2,3]"),
    ("x = f32[2,3] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "have sizes 3 and 2"),
    ("x = f32[2] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={1}", "makes sizes [2,2]"),
    ("x = u8[2,3] bitcast-convert(p)", "makes sizes [2,3,4]"),
    ("x = f32[2,2] bitcast(p)", "128 bits of 192"),
    ("x = f32[2,3] fusion(n), kind=kLoop, calls=body", "parameter 0 of 'body' is f32[2,3]"),
    ("x = f32[2,3] fusion(p, p), kind=kLoop, calls=body", "has 1 parameters, 2 operands"),
    ("x = f32[3,2] fusion(p), kind=kLoop, calls=body", "'body' returns f32[2,3], fusion needs f32[3,2]"),
    ("x = f32[2,3] while(p), condition=body, body=body", "returns f32[2,3], not pred[]"),
    ("x = f32[2,3] get-tuple-element(t), index=2", "has 2 elements, index is 2"),
    ("x = f32[2,3] get-tuple-element(t), index=1", "element 1 of 't' is s32[]"),
    ("x = f32[2,3] get-tuple-element(p), index=0", "not a tuple"),
    ("x = (f32[2,3]) tuple(p, i)", "tuple makes (f32[2,3], s32[])"),
    ("x = f32[2,3] conditional(z, p, p), true_computation=body, false_computation=body", "chooses by pred[] or s32[]"),
]


@pytest.mark.parametrize(("line", "cause"), BAD, ids=range(len(BAD)))
def test_hlo_that_does_not_fit_is_refused(line: str, cause: str) -> None:
    with pytest.raises(InvalidHlo) as caught:
        verify_module(module(line))
    assert cause in caught.value.cause
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (3 + BEFORE.count("\n") + len(OPERANDS), 3)


def test_modules_made_in_code_are_checked_without_a_place() -> None:
    builder = ComputationBuilder("e")
    x = builder.parameter(0, array("f32", 4))
    zero = builder.parameter(1, array("f32"))
    attributes = {"dimensions": (0,), "to_apply": reducer("sum", "add", array("f32"))}
    builder.add("reduce", array("f32"), [x, zero], attributes)
    made = build_module("m", builder.build())
    verify_module(made)
    assert [each.name for each in made.computations] == ["sum", "e"]
    assert parse_hlo(str(made)) == made
    builder.add("negate", array("f32", 5), [x])
    with pytest.raises(InvalidHlo) as caught:
        verify_module(build_module("m", builder.build()))
    assert caught.value.span is None


def test_a_called_computation_must_be_in_the_module() -> None:
    good = module("x = f32[2,3] fusion(p), kind=kLoop, calls=body")
    with pytest.raises(InvalidHlo, match="'body' is called but isn't in module"):
        verify_module(HloModule("m", (good.entry,), good.entry))
