"""A kernel's arguments as the two simulators want them: one way for fusions and tile programs, for IR and PTX.

In: a kernel, its code at some stage, buffers.  Out: the outputs, and what was seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.backends.base import Buffers, Launched
from warpsmith.dtypes import Kind
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.types import MemRefType, float_type, integer, memref, numpy_dtype
from warpsmith.ir.dialects import arith, func
from warpsmith.kernel import Argument, Kernel
from warpsmith.passes.support.capabilities import capabilities
from warpsmith.simt.core.checks import Checks
from warpsmith.simt.core.results import WARP, LaunchResult
from warpsmith.simt.ir.launch import run_kernel, watch_kernel
from warpsmith.simt.ptx.launch import PtxLaunch, simulate_ptx
from warpsmith.simt.ptx.launch import run_ptx as launch_ptx

__all__ = ["run_ir", "run_ptx"]


def run_ptx(kernel: Kernel[object], text: str, buffers: Buffers, watch: Checks | None = None) -> Launched:
    """Run PTX."""
    launch = PtxLaunch(
        kernel.launch.grid,
        kernel.launch.block,
        aliases=kernel.aliases,
        words=[i for i, each in enumerate(kernel.outputs) if each.whole_words],
        dynamic_shared=kernel.launch.dynamic_shared,
    )
    if kernel.form == "buffers":
        memory = [each.copy() if isinstance(each, np.ndarray) else each for each in _filled(kernel, buffers)]
        read = [i for i, each in enumerate(kernel.arguments) if not each.is_output]
        stats = launch_ptx(text, memory, launch, None if watch is None else replace(watch, read_only=read))
        found = [each for each, argument in zip(memory, kernel.arguments, strict=True) if argument.is_output]
        outputs = [each for each in found if isinstance(each, np.ndarray)]
    else:
        wanted = [(each.dtype.numpy, each.elements) for each in kernel.outputs]
        outputs, stats = simulate_ptx(text, _inputs(kernel, buffers), wanted, launch, watch)
    return outputs, None if watch is None else LaunchResult(stats.counters, stats.findings)


def run_ir(kernel: Kernel[object], module: Operation, buffers: Buffers, watch: Checks | None = None) -> Launched:
    """Run a kernel's IR at any stage; complex numbers are pairs of reals there."""
    if kernel.form == "buffers":
        module, inputs, order = _arranged(kernel, module, _filled(kernel, buffers))
        outputs: Sequence[tuple[int, np.dtype[Any]]] | int = len(kernel.outputs)
        if watch is not None:
            watch = replace(watch, names=[kernel.arguments[i].name for i in order])
    else:
        inputs = [_reals(each) for each in _inputs(kernel, buffers)]
        outputs = [_stored(each) for each in kernel.outputs]
    if watch is None:
        can = capabilities(module)
        return run_kernel(module, inputs, outputs, warp_size=can.warp_size if can.has_grid else WARP), None
    found, result = watch_kernel(module, inputs, outputs, watch)
    if result.counters is not None and kernel.form == "tensors":
        result = replace(result, counters=replace(result.counters, stage="buffers"))
    return found, result


def _inputs(kernel: Kernel[object], buffers: Buffers) -> list[Array]:
    return [each for each in buffers[: len(kernel.inputs)] if isinstance(each, np.ndarray)]


def _filled(kernel: Kernel[object], buffers: Buffers) -> list[Array | np.generic]:
    pairs = zip(kernel.arguments, buffers, strict=True)
    return [np.zeros(each.elements, each.dtype.numpy) if given is None else given for each, given in pairs]


def _reals(array: Array) -> Array:
    return array.view(f"f{array.itemsize // 2}") if array.dtype.kind == "c" else array


def _stored(argument: Argument) -> tuple[int, np.dtype[Any]]:
    """How many numbers an output has in memory, of which dtype, as the IR has them: integers without a sign."""
    dtype = argument.dtype
    if dtype.is_complex:
        return 2 * argument.elements, np.dtype(f"f{dtype.bits // 16}")
    type = float_type(dtype.ir) if dtype.kind is Kind.FLOAT else integer(dtype.bits)
    return argument.elements, numpy_dtype(type)


def _arranged(
    kernel: Kernel[object], module: Operation, buffers: Sequence[Array | np.generic]
) -> tuple[Operation, list[Array], list[int]]:
    """A copy of a module with its arguments as the simulator of IR wants them: inputs first, then outputs, every size
    known and every scalar put in; what is written starts as its buffer was, for it may be read as well, or written in
    part.  The inputs, and for each argument the number of the kernel's."""
    copy = module.clone()
    entry = func.entry(copy)
    body = entry.body
    b = Builder.at_start(body)
    inputs, written = list[int](), list[int]()
    for number, (argument, given) in enumerate(zip(body.args, buffers, strict=True)):
        if isinstance(given, np.generic):
            argument.replace_by(arith.constant(b, given.item(), argument.type))
            continue
        type = argument.type
        assert isinstance(type, MemRefType)
        if type.shape[0] < 0:
            argument.type = memref((given.nbytes // numpy_dtype(type.element).itemsize,), type.element)
        (written if kernel.arguments[number].is_output else inputs).append(number)
    old = list(body.args)
    before = [body.add_arg(old[number].type, old[number].name) for number in written]
    order = [*(old[i] for i in inputs), *before, *(old[i] for i in written)]
    body.args = order
    for i, argument in enumerate(order):
        argument.index = i
    func.set_function_type(entry, [a.type for a in order], ())
    func.set_arg_attributes(entry, [{} for _ in order])
    pairs = [n for i in range(len(written)) for n in (i, len(inputs) + i)]
    entry.attributes["warpsmith.aliases"] = at.dense_array(pairs)
    arrays = [buffers[i] for i in (*inputs, *written)]
    return copy, [each for each in arrays if isinstance(each, np.ndarray)], [*inputs, *written, *written]
