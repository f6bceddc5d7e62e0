"""Computations that XLA compiles and no emitter takes as they are written: none loses the module."""

from __future__ import annotations

import numpy as np
import pytest

from warpsmith import compile, evaluate, parse_hlo, simulate
from warpsmith.hlo.module import HloModule
from warpsmith.hlo_passes.computation_flattener import flatten

ADD = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }\n"
PAIR = "a = f32[] parameter(0)  b = f32[] parameter(1)"


def rows(reducer: str) -> str:
    """The sums of rows by `red`."""
    return (
        f"HloModule m\n{reducer}\nENTRY e {{ x = f32[64,32] parameter(0)  z = f32[] constant(0)\n"
        "  ROOT r = f32[64] reduce(x, z), dimensions={1}, to_apply=red }"
    )


def fusion(body: str, callees: str = "") -> str:
    """One fusion of f32[64] to f32[64]."""
    return (
        f"HloModule m\n{callees}\nbody {{ a = f32[64] parameter(0)\n  {body} }}\n"
        "ENTRY e { x = f32[64] parameter(0)  ROOT r = f32[64] fusion(x), kind=kLoop, calls=body }"
    )


IN = f"in {{ {PAIR}  ROOT r = f32[] add(a, b) }}\n"
WIDE = """in { a = bf16[] parameter(0)  b = bf16[] parameter(1)  c = f32[] convert(a)  d = f32[] convert(b)
  s = f32[] add(c, d)  ROOT r = bf16[] convert(s) }
red { a = bf16[] parameter(0)  b = bf16[] parameter(1)  ROOT f = bf16[] fusion(a, b), kind=kLoop, calls=in }"""
SCATTER = """i = s32[8,1] iota(), iota_dimension=0
  u = f32[8] slice(a), slice={[3:11]}
  s = f32[64] scatter(a, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, """
LOOP = """c { s = (s32[], f32[64]) parameter(0)  i = s32[] get-tuple-element(s), index=0  k = s32[] constant(3)
  ROOT r = pred[] compare(i, k), direction=LT }
b { s = (s32[], f32[64]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  v = f32[64] get-tuple-element(s), index=1  o = s32[] constant(1)  j = s32[] add(i, o)  w = f32[64] negate(v)
  ROOT t = (s32[], f32[64]) tuple(j, w) }"""

TEXTS = {
    "a reducer holds a fusion": rows(f"{IN}red {{ {PAIR}  ROOT f = f32[] fusion(a, b), kind=kLoop, calls=in }}"),
    "a reducer holds a call": rows(f"{IN}red {{ {PAIR}  ROOT f = f32[] call(a, b), to_apply=in }}"),
    "a reducer of bf16 by way of f32": rows(WIDE).replace("f32[64", "bf16[64").replace("z = f32[]", "z = bf16[]"),
    "a reducer holds a conditional": rows(
        "t { a = f32[] parameter(0)  ROOT r = f32[] negate(a) }\nf { a = f32[] parameter(0)  ROOT r = f32[] abs(a) }\n"
        f"red {{ {PAIR}  s = f32[] add(a, b)  z = f32[] constant(0)  p = pred[] compare(a, z), direction=LT\n"
        "  ROOT c = f32[] conditional(p, s, s), true_computation=t, false_computation=f }"
    ),
    "a reducer holds a broadcast and a reduce": rows(
        f"{ADD}red {{ {PAIR}  v = f32[4] broadcast(b), dimensions={{}}  z = f32[] constant(0)\n"
        "  q = f32[] reduce(v, z), dimensions={0}, to_apply=add  ROOT r = f32[] add(a, q) }"
    ),
    "a map holds a fusion": fusion(
        "ROOT r = f32[64] map(a), dimensions={0}, to_apply=mapped",
        "in { a = f32[] parameter(0)  ROOT r = f32[] negate(a) }\n"
        "mapped { a = f32[] parameter(0)  ROOT f = f32[] fusion(a), kind=kLoop, calls=in }",
    ),
    "a map looks a table up": fusion(
        "n = s32[64] iota(), iota_dimension=0\n  ROOT r = f32[64] map(n), dimensions={0}, to_apply=mapped",
        "mapped { a = s32[] parameter(0)  t = f32[4] constant({1,2,3,4})\n"
        "  d = f32[1] dynamic-slice(t, a), dynamic_slice_sizes={1}  ROOT r = f32[] reshape(d) }",
    ),
    "a comparator holds a fusion": fusion(
        "ROOT r = f32[64] sort(a), dimensions={0}, to_apply=less",
        f"in {{ {PAIR}  ROOT r = pred[] compare(a, b), direction=LT }}\n"
        f"less {{ {PAIR}  ROOT f = pred[] fusion(a, b), kind=kLoop, calls=in }}",
    ),
    "a scatter's combiner holds a fusion": fusion(
        SCATTER + "index_vector_dim=1, to_apply=red\n  ROOT r = f32[64] copy(s)",
        f"{IN}red {{ {PAIR}  ROOT f = f32[] fusion(a, b), kind=kLoop, calls=in }}",
    ),
    "a fusion in a fusion": fusion(
        "f = f32[64] fusion(a), kind=kLoop, calls=in\n  ROOT r = f32[64] abs(f)",
        "in { a = f32[64] parameter(0)  ROOT r = f32[64] negate(a) }",
    ),
    "a fusion of two results in a fusion": fusion(
        "f = (f32[64], f32[64]) fusion(a), kind=kLoop, calls=in\n  g = f32[64] get-tuple-element(f), index=0\n"
        "  h = f32[64] get-tuple-element(f), index=1\n  ROOT r = f32[64] add(g, h)",
        "in { a = f32[64] parameter(0)  n = f32[64] negate(a)  b = f32[64] abs(a)\n"
        "  ROOT r = (f32[64], f32[64]) tuple(n, b) }",
    ),
    "a tuple in a fusion": fusion(
        "t = (f32[64], f32[64]) tuple(a, a)\n  g = f32[64] get-tuple-element(t), index=1\n  ROOT r = f32[64] negate(g)"
    ),
    "a tuple for a parameter": """HloModule m
body { t = (f32[64], f32[64]) parameter(0)  g = f32[64] get-tuple-element(t), index=0
  h = f32[64] get-tuple-element(t), index=1  ROOT r = f32[64] add(g, h) }
ENTRY e { x = f32[64] parameter(0)  t = (f32[64], f32[64]) tuple(x, x)
  ROOT r = f32[64] fusion(t), kind=kLoop, calls=body }""",
    "a scatter whose result is used": fusion(
        SCATTER + "index_vector_dim=1, to_apply=add\n  ROOT r = f32[64] negate(s)", ADD
    ),
    "a sort in a fusion": fusion(
        "s = f32[64] sort(a), dimensions={0}, to_apply=less\n  ROOT r = f32[64] negate(s)",
        f"less {{ {PAIR}  ROOT f = pred[] compare(a, b), direction=LT }}",
    ),
    "a loop in a fusion": fusion(
        "z = s32[] constant(0)\n  t = (s32[], f32[64]) tuple(z, a)\n"
        "  w = (s32[], f32[64]) while(t), condition=c, body=b\n  ROOT g = f32[64] get-tuple-element(w), index=1",
        LOOP,
    ),
    "tuples in the result": fusion(
        "n = f32[64] negate(a)\n  t = (f32[64], f32[64]) tuple(a, n)\n"
        "  ROOT r = ((f32[64], f32[64]), f32[64]) tuple(t, n)"
    ).replace("r = f32[64] fusion", "r = ((f32[64], f32[64]), f32[64]) fusion"),
    "no result": fusion("ROOT r = () tuple()").replace("r = f32[64] fusion", "r = () fusion"),
    "a result of nothing beside one": fusion(
        "u = () tuple()\n  n = f32[64] negate(a)\n  ROOT r = ((), f32[64]) tuple(u, n)"
    ).replace("r = f32[64] fusion", "r = ((), f32[64]) fusion"),
    "a tuple that is the result": """HloModule m
body { ROOT t = (f32[64], f32[64]) parameter(0) }
ENTRY e { t = (f32[64], f32[64]) parameter(0)
  ROOT r = (f32[64], f32[64]) fusion(t), kind=kLoop, calls=body }""",
    "a constant of a tuple": fusion(
        "c = (f32[2], f32[]) constant(({1, 2}, 3))\n  g = f32[] get-tuple-element(c), index=1\n"
        "  b = f32[64] broadcast(g), dimensions={}\n  ROOT r = f32[64] add(a, b)"
    ),
    "a sort of two in a fusion": fusion(
        "i = s32[64] iota(), iota_dimension=0\n"
        "  s = (f32[64], s32[64]) sort(a, i), dimensions={0}, is_stable=true, to_apply=less\n"
        "  j = s32[64] get-tuple-element(s), index=1\n  ROOT r = f32[64] convert(j)",
        f"less {{ {PAIR}  c = s32[] parameter(2)  d = s32[] parameter(3)\n"
        "  ROOT f = pred[] compare(a, b), direction=LT }",
    ),
    "a scatter into what the fusion computes": fusion(
        "n = f32[64] negate(a)\n  "
        + SCATTER.replace("scatter(a,", "scatter(n,").replace("  s = ", "  ROOT s = ")
        + "index_vector_dim=1, to_apply=add",
        ADD,
    ),
    "a scatter beside another result": fusion(
        SCATTER + "index_vector_dim=1, to_apply=add\n  n = f32[64] negate(a)\n"
        "  ROOT r = (f32[64], f32[64], f32[64]) tuple(s, n, s)",
        ADD,
    ).replace("r = f32[64] fusion", "r = (f32[64], f32[64], f32[64]) fusion"),
    "a scatter of complex products": fusion(
        SCATTER.replace("  s = ", "  ROOT s = ") + "index_vector_dim=1, to_apply=mul",
        ADD.replace("add", "mul").replace("ROOT r = f32[] mul(", "ROOT r = f32[] multiply("),
    ).replace("f32[", "c64["),
    "the bits of floats in a reducer": rows(
        f"red {{ {PAIR}  i = s32[] bitcast(a)  j = s32[] bitcast(b)  k = s32[] maximum(i, j)\n"
        "  ROOT r = f32[] bitcast(k) }"
    ),
    "the bits of complex numbers in a fusion": fusion(
        "b = c64[64,2] bitcast-convert(a)\n  ROOT r = c64[64,2] negate(b)"
    )
    .replace("f32[64]", "c128[64]")
    .replace("r = c128[64] fusion", "r = c64[64,2] fusion"),
    "more results than a GPU's kernel has buffers": fusion(
        f"n = f32[64] negate(a)\n  ROOT r = ({', '.join(['f32[64]'] * 4100)}) tuple({', '.join(['n'] * 4100)})"
    ).replace("r = f32[64] fusion", f"r = ({', '.join(['f32[64]'] * 4100)}) fusion"),
    "the bits of complex numbers": "ENTRY e { x = c128[8] parameter(0)  ROOT r = c64[8,2] bitcast-convert(x) }",
}


def inputs(module: HloModule) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [leaf for each in module.entry.parameters for leaf in each.shape.leaves()]
    return [rng.integers(1, 9, each.dims).astype(each.dtype.numpy) for each in shapes]


@pytest.mark.parametrize("name", TEXTS)
def test_it_compiles_and_has_the_interpreters_values(name: str) -> None:
    """One odd computation would lose the whole module, or compute something else."""
    module = parse_hlo(TEXTS[name])
    arrays = inputs(module)
    expected = evaluate(module, *arrays)
    found = [evaluate(flatten(module), *arrays), compile(module)(*arrays), simulate(module, *arrays).outputs]
    for outputs in found:
        for mine, theirs in zip(outputs, expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_a_fusion_that_takes_and_gives_tuples_stays_one_kernel() -> None:
    """Every op of it would be a kernel of its own."""
    text = """HloModule m
body { t = (f32[64], f32[64]) parameter(0)  g = f32[64] get-tuple-element(t), index=0
  h = f32[64] get-tuple-element(t), index=1  s = f32[64] add(g, h)  u = (f32[64], f32[64]) tuple(s, g)
  n = f32[64] negate(s)  ROOT r = ((f32[64], f32[64]), f32[64]) tuple(u, n) }
ENTRY e { t = (f32[64], f32[64]) parameter(0)
  ROOT r = ((f32[64], f32[64]), f32[64]) fusion(t), kind=kLoop, calls=body }"""
    opcodes = [each.opcode for each in flatten(parse_hlo(text)).entry]
    assert opcodes.count("fusion") == 1
    assert set(opcodes) <= {"fusion", "parameter", "tuple", "get-tuple-element"}


def test_a_module_without_such_computations_stays() -> None:
    """Every module would be built anew."""
    module = parse_hlo(rows(ADD.replace("add {", "red {")))
    assert flatten(module) is module
