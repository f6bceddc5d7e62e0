"""Passes keep results: each kernel here runs before the first pass and after every one, and must give the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir.interpreter import Machine, run_kernel

import warpsmith.ir.dialects
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.text.parser import parse_module
from warpsmith.ir.text.printer import print_module
from warpsmith.passes.manager import run_pipeline
from warpsmith.passes.pipeline import CPU_PIPELINE, GPU_PIPELINE

assert warpsmith.ir.dialects.arith


def _kernel(source: str, out: str, map: str, body: str, *, extra: str = "", threads: int = 8, blocks: int = 3) -> str:
    return f"""
#map = #xla_gpu.indexing_map<"{map}">
func.func @main(%in: tensor<{source}>, %out: tensor<{out}xf32>) -> tensor<{out}xf32> attributes {{xla.entry}} {{
  %t = gpu.thread_id x {{xla.range = [0 : index, {threads - 1} : index]}}
  %b = xla_gpu.workgroup_id x {{xla.range = [0 : index, {blocks - 1} : index]}}
  {body}
}}
{extra}
"""


ELEMENT = """
func.func private @element(%in: tensor<{shape}xf32>, %i: index, %j: index) -> f32 {{
  %half = arith.constant 0.5 : f32
  %x = tensor.extract %in[%i, %j] : tensor<{shape}xf32>
  %y = arith.mulf %x, %half : f32
  %z = arith.addf %y, %x : f32
  return %z : f32
}}
"""
LOOP_BODY = """
  %r = xla_gpu.loop (%t, %b)[%s] -> (%i, %j) in #map iter_args(%iter = %out) -> (tensor<{shape}xf32>) {{
    %v = xla_gpu.pure_call @element(%in, %i, %j) : (tensor<{shape}xf32>, index, index) -> f32
    %n = tensor.insert %v into %iter[%i, %j] : tensor<{shape}xf32>
    xla_gpu.yield %n : tensor<{shape}xf32>
  }}
  return %r : tensor<{shape}xf32>
"""


def _elementwise(rows: int, columns: int, constraint: str, step: int = 4) -> str:
    shape = f"{rows}x{columns}"
    linear = f"b * {8 * step} + t * {step} + s"
    map = (
        f"(t, b)[s] -> (({linear}) floordiv {columns}, ({linear}) mod {columns}), domain: t in [0, 7], b in [0, 2], "
        f"s in [0, {step - 1}]{constraint}"
    )
    return _kernel(f"{shape}xf32", shape, map, LOOP_BODY.format(shape=shape), extra=ELEMENT.format(shape=shape))


KERNELS = {
    # 96 elements, 8 threads, 3 blocks, 4 elements each: everything vectorises.
    "whole": (_elementwise(6, 16, ""), (6, 16), (6, 16)),
    # 84 elements: the last thread stops early, on a vector's border.
    "guarded": (_elementwise(6, 14, ", b * 32 + t * 4 + s in [0, 83]"), (6, 14), (6, 14)),
    # 77 elements: inside a vector.
    "ragged": (_elementwise(7, 11, ", b * 32 + t * 4 + s in [0, 76]"), (7, 11), (7, 11)),
    # Columns: 3 loop steps of 8 rows, the last one cut (peeled).
    "column_sum": (
        _kernel(
            "20x24xf32",
            "24",
            "(t, b)[s, u] -> (s * 8 + u, t * 3 + b), domain: t in [0, 7], b in [0, 2], s in [0, 2], u in [0, 7], "
            "s * 8 + u in [0, 19]",
            """
  %zero = arith.constant 0.0 : f32
  %sum = xla_gpu.loop (%t, %b)[%s, %u] -> (%i, %j) in #map iter_args(%a = %zero) -> (f32) {
    %x = tensor.extract %in[%i, %j] : tensor<20x24xf32>
    %n = arith.addf %a, %x : f32
    xla_gpu.yield %n : f32
  }
  %at = xla_gpu.apply_indexing
    #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 3 + d1), domain: d0 in [0, 7], d1 in [0, 2]">(%t, %b)
  %r = tensor.insert %sum into %out[%at] : tensor<24xf32>
  return %r : tensor<24xf32>
""",
        ),
        (20, 24),
        (24,),
    ),
    # A dynamic slice: clamped start, column-major source, and a guarded read.
    "dynamic_slice": (
        _kernel(
            "9x24xf32, dense<[0, 1]> : tensor<2xi64>",
            "24",
            "(t, b) -> (b * 8 + t), domain: t in [0, 7], b in [0, 2]",
            """
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %f = arith.constant 7.5 : f32
  %start = arith.muli %b, %c4 : index
  %low = arith.maxsi %start, %c0 : index
  %clamped = arith.minsi %low, %c6 : index
  %i = xla_gpu.apply_indexing #map(%t, %b)
  %in_range = arith.cmpi ult, %i, %c6 : index
  %x = xla_gpu.predicated_extract %in[%clamped, %i] if %in_range else %f
    : tensor<9x24xf32, dense<[0, 1]> : tensor<2xi64>>
  %r = tensor.insert %x into %out[%i] : tensor<24xf32>
  return %r : tensor<24xf32>
""",
        ),
        (9, 24),
        (24,),
    ),
    # Several threads add to one element.
    "scatter_add": (
        _kernel(
            "3x8xf32",
            "4",
            "(t, b) -> (b, t), domain: t in [0, 7], b in [0, 2]",
            """
  %i:2 = xla_gpu.apply_indexing #map(%t, %b)
  %x = tensor.extract %in[%i#0, %i#1] : tensor<3x8xf32>
  %at = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 mod 4), domain: d0 in [0, 7]">(%t)
  %r = xla_gpu.atomic_rmw %out[%at] : tensor<4xf32> {
    ^bb0(%old: f32):
      %new = arith.addf %old, %x : f32
      xla_gpu.yield %new : f32
  }
  return %r : tensor<4xf32>
""",
        ),
        (3, 8),
        (4,),
    ),
}


def _compare_after_every_pass(
    text: str, inputs: list[np.ndarray], outputs: list[np.ndarray], passes: list[str]
) -> Operation:
    module = parse_module(text)
    expected = run_kernel(module, inputs, outputs, 8, 3)

    def compare(index: int, name: str, module: Operation) -> None:
        got = run_kernel(module, inputs, outputs, 8, 3)
        for g, e in zip(got, expected, strict=True):
            np.testing.assert_array_equal(g, e, f"after pass {index}, {name}:\n{print_module(module)}")

    run_pipeline(module, passes, on_after=compare)
    return module


@pytest.mark.parametrize("target", ["gpu", "cpu"])
@pytest.mark.parametrize("name", KERNELS)
def test_kernel_gives_the_same_bits_after_every_pass(name: str, target: str) -> None:
    text, source, result = KERNELS[name]
    rng = np.random.default_rng(7)
    inputs = [rng.standard_normal(source).astype(np.float32)]
    outputs = [np.full(result, -1.0, np.float32)]
    _compare_after_every_pass(text, inputs, outputs, list(GPU_PIPELINE if target == "gpu" else CPU_PIPELINE))


def test_bounds_that_hold_leave_no_if_and_bounds_that_cut_vectors_at_their_border_leave_one() -> None:
    """The whole point of ranges, LICM and unswitching: what they enable is there."""
    for name, ifs in (("whole", 0), ("guarded", 1)):
        module = parse_module(KERNELS[name][0])
        run_pipeline(module, GPU_PIPELINE)
        names = [op.name for op in module.walk()]
        assert names.count("scf.if") == ifs, name
        assert names.count("vector.transfer_read") == 1, name
        assert names.count("vector.transfer_write") == 1, name
        assert "scf.for" not in names, name


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.data())
def test_random_elementwise_kernels_give_the_same_bits(data: st.DataObject) -> None:
    rows, columns = data.draw(st.integers(1, 7)), data.draw(st.integers(1, 12))
    step = data.draw(st.sampled_from([1, 2, 3, 4, 8]))
    total = rows * columns
    text = _elementwise(rows, columns, f", b * {8 * step} + t * {step} + s in [0, {total - 1}]", step)
    inputs = [np.arange(total, dtype=np.float32).reshape(rows, columns)]
    _compare_after_every_pass(text, inputs, [np.zeros((rows, columns), np.float32)], list(GPU_PIPELINE))


# ---------------------------------------------------------------------------------------------------- integer dags
_BINARY = ["addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minsi", "maxui", "minui"]


@st.composite
def _integer_function(draw: st.DrawFn) -> str:
    """A function of three i8 and one i1: arithmetic, comparisons, casts, selects, ifs."""
    bytes_, bits, lines = ["%a", "%b", "%c"], ["%p"], list[str]()
    for k in range(draw(st.integers(0, 4))):
        lines.append(f"%k{k} = arith.constant {draw(st.integers(-128, 127))} : i8")
        bytes_.append(f"%k{k}")
    for n in range(draw(st.integers(1, 14))):
        byte, bit = st.sampled_from(bytes_), st.sampled_from(bits)
        kind = draw(st.integers(0, 7))
        if kind < 3:
            lines.append(f"%v{n} = arith.{draw(st.sampled_from(_BINARY))} {draw(byte)}, {draw(byte)} : i8")
            bytes_.append(f"%v{n}")
        elif kind == 3:
            predicate = draw(st.sampled_from(["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]))
            lines.append(f"%v{n} = arith.cmpi {predicate}, {draw(byte)}, {draw(byte)} : i8")
            bits.append(f"%v{n}")
        elif kind == 4:
            lines.append(f"%v{n} = arith.select {draw(bit)}, {draw(byte)}, {draw(byte)} : i8")
            bytes_.append(f"%v{n}")
        elif kind == 5:
            narrow = draw(st.sampled_from(["i1", "i2", "i4"]))
            extend = draw(st.sampled_from(["extui", "extsi"]))
            lines.append(f"%t{n} = arith.trunci {draw(byte)} : i8 to {narrow}")
            lines.append(f"%v{n} = arith.{extend} %t{n} : {narrow} to i8")
            bytes_.append(f"%v{n}")
        elif kind == 6:
            lines.append(
                f"%v{n} = arith.{draw(st.sampled_from(['andi', 'ori', 'xori']))} {draw(bit)}, {draw(bit)} : i1"
            )
            bits.append(f"%v{n}")
        else:
            x, y = draw(byte), draw(byte)
            lines.append(
                f"%v{n} = scf.if {draw(bit)} -> (i8) {{\n %w{n} = arith.addi {x}, {y} : i8\n scf.yield %w{n} : i8\n"
                f"}} else {{\n scf.yield {draw(byte)} : i8\n}}"
            )
            bytes_.append(f"%v{n}")
    out, bit_out = bytes_[-1], bits[-1]
    body = "\n".join(lines)
    return (
        f"func.func @main(%a: i8, %b: i8, %c: i8, %p: i1) -> (i8, i1) {{\n{body}\nreturn {out}, {bit_out} : i8, i1\n}}"
    )


@settings(max_examples=80, deadline=None)
@given(_integer_function(), st.lists(st.tuples(*[st.integers(-128, 127)] * 3, st.booleans()), min_size=1, max_size=4))
def test_random_integer_functions_keep_their_values(text: str, points: list[tuple[int, int, int, bool]]) -> None:
    def values(module: Operation) -> list[tuple[int, ...]]:
        machine = Machine(module)
        return [
            tuple(int(r) for r in machine.call("main", [*(np.array(v, np.int8) for v in p[:3]), np.array(p[3])]))
            for p in points
        ]

    module = parse_module(text)
    expected = values(module)
    for passes in ("simplify-arith", "canonicalize", "cse", "canonicalize"):
        run_pipeline(module, passes)
        assert values(module) == expected, f"{passes}\n{text}\n{print_module(module)}"


# ------------------------------------------------------------------------------------------------- index map chains
@st.composite
def _expression(draw: st.DrawFn, names: list[str], depth: int = 3) -> str:
    kind = draw(st.integers(0, 5)) if depth else 0
    if kind == 0:
        return draw(st.sampled_from(names))
    inner = draw(_expression(names, depth - 1))
    constant = draw(st.integers(1, 9))
    if kind == 1:
        return f"({inner} + {draw(_expression(names, depth - 1))})"
    return {2: f"({inner} * {constant})", 3: f"({inner} floordiv {constant})", 4: f"({inner} mod {constant})"}.get(
        kind, f"({inner} + {constant})"
    )


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_chains_of_apply_indexing_keep_their_values(data: st.DataObject) -> None:
    bounds = [data.draw(st.integers(0, 12)) for _ in range(3)]
    values, lines = ["%x", "%y", "%z"], list[str]()
    for n in range(data.draw(st.integers(1, 5))):
        picked = [data.draw(st.sampled_from(values)) for _ in range(2)]
        expr = data.draw(_expression(["d0", "d1"]))
        lines.append(
            f'%v{n} = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> ({expr}), domain: '
            f'd0 in [0, 100000], d1 in [0, 100000]">({picked[0]}, {picked[1]})'
        )
        values.append(f"%v{n}")
    outs = [data.draw(st.sampled_from(values)) for _ in range(2)]
    arguments = ", ".join(
        f"%{n}: index {{xla.range = [0 : index, {b} : index]}}" for n, b in zip("xyz", bounds, strict=True)
    )
    text = f"func.func @main({arguments}) -> (index, index) {{\n" + "\n".join(lines)
    text += f"\nreturn {', '.join(outs)} : index, index\n}}"
    point = [data.draw(st.integers(0, b)) for b in bounds]
    module = parse_module(text)
    expected = [int(v) for v in Machine(module).call("main", [np.int64(p) for p in point])]
    if max(expected) > 100000:
        return
    for passes in ("canonicalize", "simplify-arith", "canonicalize,cse"):
        run_pipeline(module, passes)
        got = [int(v) for v in Machine(module).call("main", [np.int64(p) for p in point])]
        assert got == expected, f"{passes}\n{text}\n{print_module(module)}"
