"""Runs a fusion's kernel in the simulator as emitted and after every pass, and on the CPU, and compares.

`check_passes` asserts, for one corpus case and one target: the emitted kernel agrees with the reference interpreter
within its bounds; each pass leaves IR that verifies and whose text reads back to the same text; and the kernel gives
the same bits before and after it, unless the pass's contract says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from fusion_corpus import Case, inputs_of
from kernel_runner import from_memory, to_memory

import warpsmith.ir.dialects
from warpsmith.arrays import Array
from warpsmith.backends.cpu import pipeline as cpu
from warpsmith.backends.nvptx import pipeline as nvptx
from warpsmith.devices import Device, device
from warpsmith.dtypes import Kind
from warpsmith.emitters import EmittedKernel, emit
from warpsmith.emitters.kernel.types import scalar_type
from warpsmith.hlo.evaluator import evaluate_with_bounds, within_bounds
from warpsmith.hlo.module import HloInstruction, HloModule
from warpsmith.hlo_passes.wrap import wrap
from warpsmith.ir.core.ssa import Operation, Trait
from warpsmith.ir.core.types import numpy_dtype
from warpsmith.ir.core.verifier import verify
from warpsmith.ir.text.parser import parse_module
from warpsmith.ir.text.printer import print_module
from warpsmith.kernel import Argument
from warpsmith.numerics.bounds import bound
from warpsmith.passes.manager import PassCall, lookup
from warpsmith.schedule.schedule import make_schedule
from warpsmith.simt import run_kernel

assert warpsmith.ir.dialects.arith
LLVM_PASSES = ("convert-scf-to-cf", "convert-to-llvm")


@dataclass
class Counts:
    """What a check did."""

    passes: int = 0
    simulated: int = 0


def fusion_of(module: HloModule) -> HloInstruction:
    """The one kernel of a module."""
    steps = [step for step in make_schedule(wrap(module)).steps if step.kind == "kernel"]
    assert len(steps) == 1, [step.instruction.name for step in steps]
    return steps[0].instruction


def simulate(module: Operation, kernel: EmittedKernel, arrays: Sequence[Array]) -> list[Array]:
    """The kernel's outputs in logical order; `module` is its IR at some stage."""
    shapes = kernel.arguments
    flat = [to_memory(array, shape) for array, shape in zip(arrays, shapes, strict=False)]
    outputs = shapes[len(arrays) :]
    sizes = [(len(to_memory(np.empty(s.dims, s.dtype.numpy), s)), _stored(s)) for s in outputs]
    found = run_kernel(module, flat, sizes)
    for data, shape in zip(found, outputs, strict=True):
        if shape.dtype.kind is Kind.PRED:
            assert ((data == 0) | (data == 1)).all(), "a pred that is neither 0 nor 1"
    return [from_memory(data, shape) for data, shape in zip(found, outputs, strict=True)]


def _stored(shape: Argument) -> np.dtype[Any]:
    """The numpy dtype of a shape's elements in a kernel's memory."""
    return numpy_dtype(scalar_type(shape.dtype))


def passes_of(target: Device, *, vector_bits: int = 512, nontemporal: bool = False) -> list[PassCall]:
    """The target's passes with the options that its driver gives them."""
    if target.is_gpu:
        return [PassCall(name) for name in nvptx.FUSIONS]
    options = {
        "vectorize-cpu": {"vector_bits": vector_bits, "nontemporal": nontemporal, "stream_from": 0},
        "expand-math": {"fma": True},
    }
    return [PassCall(name, options.get(name, {})) for name in cpu.FUSIONS]


def assert_close(
    actual: Sequence[Array], expected: Sequence[Array], bounds: Sequence[Array], module: HloModule, where: str
) -> None:
    """Each output within the interpreter's bounds."""
    leaves = module.entry.root.shape.leaves()
    for i, (mine, theirs, error, leaf) in enumerate(zip(actual, expected, bounds, leaves, strict=True)):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype), f"{where}: output {i}"
        good = within_bounds(mine, theirs, error, leaf.dtype)
        if not good.all():
            at = tuple(np.argwhere(~good)[0])
            raise AssertionError(
                f"{where}: output {i} {list(map(int, at))} is {mine[at]!r}, not {theirs[at]!r} (+-{error[at]}); "
                f"{int((~good).sum())} of {good.size} differ"
            )


def assert_same(actual: Sequence[Array], expected: Sequence[Array], where: str) -> None:
    """The same bits; which NaN a NaN is, is open."""
    for i, (mine, theirs) in enumerate(zip(actual, expected, strict=True)):
        assert mine.dtype == theirs.dtype
        differ = _bits(mine) != _bits(theirs)
        if differ.any():
            at = int(np.argwhere(differ)[0][0])
            raise AssertionError(
                f"{where}: output {i} [{at}] was {_parts(theirs)[at]!r} before and is {_parts(mine)[at]!r}; "
                f"{int(differ.sum())} of {differ.size} differ"
            )


def _parts(array: Array) -> Array:
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def _bits(array: Array) -> Array:
    flat = _parts(array)
    if "int4" in flat.dtype.name or "int2" in flat.dtype.name:  # the upper bits of their bytes are open
        return flat.astype(np.int8)
    bits = flat.view(f"u{flat.dtype.itemsize}").copy()
    if flat.dtype.kind not in "biu":
        with np.errstate(all="ignore"):
            bits[np.isnan(flat)] = np.iinfo(bits.dtype).max
    return bits


def check_passes(
    case: Case, target: str, *, vector_bits: int = 512, nontemporal: bool = False, seed: int = 0
) -> Counts:
    """The whole check of one case on one target; see the module's docstring."""
    module = case.module()
    arrays = inputs_of(case, module, seed)
    expected, bounds = evaluate_with_bounds(module, *arrays, op_ulp_bound=bound)
    machine = device(target)
    kernel = emit(fusion_of(module), machine)
    ir, counts = kernel.module, Counts()
    verify(ir)
    text = print_module(ir)
    assert print_module(parse_module(text)) == text, f"{case.name}: the emitted text reads back differently"
    outputs = simulate(ir, kernel, arrays)
    assert_close(outputs, expected, bounds, module, f"{case.name} as emitted for {target}")
    for call in passes_of(machine, vector_bits=vector_bits, nontemporal=nontemporal):
        info = lookup(call.name)
        exact = info.contract == "bit-exact" or not any(op.row.has(Trait.INEXACT) for op in ir.walk())
        info.run(ir, **call.options)
        counts.passes += 1
        before, text = text, print_module(ir)
        if text == before:
            continue
        where = f"{case.name} for {target} after {call}"
        verify(ir)
        assert print_module(parse_module(text)) == text, f"{where}: the text reads back differently"
        if case.large and machine.is_cpu and call.name in LLVM_PASSES:
            continue  # loops of blocks run one iteration after another in the simulator
        counts.simulated += 1
        previous, outputs = outputs, simulate(ir, kernel, arrays)
        if exact:
            assert_same(outputs, previous, where)
        else:
            assert_close(outputs, expected, bounds, module, where)
    return counts
