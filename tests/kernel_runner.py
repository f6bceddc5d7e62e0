"""Runs emitted kernels, before any pass, in the simulator, and compares them with the reference interpreter.

`check(text, arrays, target)` emits every fusion of a module (plain ops are wrapped first), runs the plan, and asserts
that each output lies within the interpreter's bounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import warpsmith.ir.dialects
from warpsmith.arrays import Array
from warpsmith.devices import device
from warpsmith.emitters import EmittedKernel, emit
from warpsmith.hlo.evaluator import evaluate_with_bounds, within_bounds
from warpsmith.hlo.module import HloModule
from warpsmith.hlo.shapes import Shape
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.hlo_passes.wrap import wrap
from warpsmith.ir.core.verifier import verify
from warpsmith.kernel import Argument
from warpsmith.numerics.bounds import bound
from warpsmith.numerics.inputs import Profile, random_array
from warpsmith.schedule.schedule import make_schedule
from warpsmith.simt import run_kernel

assert warpsmith.ir.dialects.arith


def random_inputs(module: HloModule, seed: int = 0, profile: Profile = Profile.MIXTURE) -> list[Array]:
    """One array a parameter of the entry."""
    shapes = [each.array_shape for each in module.entry.parameters]
    return [
        random_array(shape.dtype, shape.dims, seed=seed, parameter=i, profile=profile) for i, shape in enumerate(shapes)
    ]


def to_memory(array: Array, shape: Shape | Argument) -> Array:
    """Logical order to the flat order of memory, complex numbers as pairs of floats."""
    flat = np.ascontiguousarray(np.transpose(array, tuple(reversed(shape.minor_to_major)))).reshape(-1)
    return flat.view(flat.real.dtype) if shape.dtype.is_complex else flat


def from_memory(data: Array, shape: Shape | Argument) -> Array:
    """The inverse of `to_memory`."""
    order = tuple(reversed(shape.minor_to_major))
    if shape.dtype.numpy.itemsize == data.dtype.itemsize:
        data = data.view(shape.dtype.numpy)
    elif shape.dtype.is_complex:
        data = np.ascontiguousarray(data).view(shape.dtype.numpy)
    physical = data.reshape([shape.dims[d] for d in order])
    return np.ascontiguousarray(np.transpose(physical, np.argsort(order))).reshape(shape.dims)


def run_emitted(kernel: EmittedKernel, inputs: Sequence[Array]) -> list[Array]:
    """One emitted kernel on arrays in logical order."""
    verify(kernel.module)
    shapes = kernel.arguments
    flat = [to_memory(array, shape) for array, shape in zip(inputs, shapes, strict=False)]
    outputs = shapes[len(inputs) :]
    found = run_kernel(kernel.module, flat, len(outputs))
    return [from_memory(data, shape) for data, shape in zip(found, outputs, strict=True)]


def run_module(module: HloModule, arrays: Sequence[Array], target: str, numerics: str = "strict") -> list[Array]:
    """All kernels of a module in the order of its schedule; a host step is an error here."""
    steps = make_schedule(wrap(module))
    values: dict[int, Array] = dict(zip(steps.parameters, arrays, strict=True))
    values.update({b: literal.array for b, literal in steps.constants.items()})

    def value(b: int) -> Array:
        if b not in values:  # a bitcast of another buffer
            source = steps.storage[b]
            values[b] = from_memory(to_memory(values[source], steps.buffers[source]), steps.buffers[b])
        return values[b]

    for step in steps.steps:
        assert step.kind == "kernel", f"{step.instruction.name}: {step.reason}"
        kernel = emit(step.instruction, device(target), numerics=numerics)
        values.update(zip(step.outputs, run_emitted(kernel, [value(b) for b in step.inputs]), strict=True))
    return [value(b) for b in steps.results]


def check(
    text: str, arrays: Sequence[Array] | None = None, target: str = "sm_90", profile: Profile = Profile.MIXTURE
) -> list[Array]:
    """Assert that every output agrees with the interpreter; the outputs."""
    module = parse_hlo(text)
    inputs = list(arrays) if arrays is not None else random_inputs(module, profile=profile)
    expected, bounds = evaluate_with_bounds(module, *inputs, op_ulp_bound=bound)
    actual = run_module(module, inputs, target)
    leaves = module.entry.root.shape.leaves()
    for i, (mine, theirs, error, leaf) in enumerate(zip(actual, expected, bounds, leaves, strict=True)):
        good = within_bounds(mine, theirs, error, leaf.dtype)
        if not good.all():
            at = np.argwhere(~good)[0]
            where = tuple(at)
            raise AssertionError(
                f"output {i} {list(at)} on {target}: {mine[where]!r}, not {theirs[where]!r} (+-{error[where]}); "
                f"{int((~good).sum())} of {good.size} differ"
            )
    return actual
