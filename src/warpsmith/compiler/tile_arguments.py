"""A tile program's arguments: arrays checked against its parameters, and a module whose arguments the simulator takes.

The simulator wants inputs first, then outputs, and every size known; a kernel has them in its author's order, some both
read and written, some of symbolic size.  So a copy of the module gets them in that order, with sizes and scalars put
in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpsmith.errors import ArgumentMismatch, did_you_mean
from warpsmith.ir import attributes as at
from warpsmith.ir.builder import Builder
from warpsmith.ir.core import Operation
from warpsmith.ir.dialects import arith, func
from warpsmith.ir.types import MemRefType, memref
from warpsmith.tile.frontend.values import ParameterInfo
from warpsmith.tile.program import Kernel

__all__ = ["Arranged", "Bound", "arranged", "bind_arguments"]

Array = np.ndarray[Any, np.dtype[Any]]

_SYMBOLIC_DEFAULT = 64  # a symbolic extent that no array gives


@dataclass(frozen=True, slots=True)
class Bound:
    """Arrays and scalars by parameter; `written` names the buffers that the kernel may write."""

    buffers: dict[str, Array]
    scalars: dict[str, int | float]
    written: tuple[str, ...]


def bind_arguments(
    kernel: Kernel, module: Operation, arrays: Mapping[str, Any] | Sequence[Any] | None, seed: int
) -> Bound:
    """Match arrays to parameters.  ArgumentMismatch says which doesn't fit, and how."""
    buffers = [p for p in kernel.parameters if p.shape is not None]
    given = _by_name(kernel, buffers, arrays)
    extents = _extents(kernel, buffers, given)
    attributes = func.arg_attributes(func.entry(module))
    written = tuple(
        p.name
        for p, attrs in zip(kernel.parameters, attributes, strict=False)
        if p.shape is not None and "xla.invariant" not in attrs
    )
    rng = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for parameter in buffers:
        shape = tuple(extents[d] if isinstance(d, str) else d for d in parameter.shape or ())
        array = given.get(parameter.name)
        found[parameter.name] = (
            _checked(kernel, parameter, shape, array) if array is not None else _made(rng, parameter, shape)
        )
    scalars: dict[str, int | float] = {}
    for parameter in kernel.parameters:
        if parameter.shape is None:
            value = given.get(parameter.name, extents.get(parameter.name))
            scalars[parameter.name] = _SYMBOLIC_DEFAULT if value is None else np.asarray(value).item()
    return Bound(found, scalars, written)


def _by_name(
    kernel: Kernel, buffers: Sequence[ParameterInfo], arrays: Mapping[str, Any] | Sequence[Any] | None
) -> dict[str, Any]:
    if arrays is None:
        return {}
    if isinstance(arrays, Mapping):
        names = [p.name for p in kernel.parameters]
        known = {**{n: n for n in names}, **{n.removesuffix("_ptr"): n for n in names}}
        for key in arrays:
            if key not in known:
                raise ArgumentMismatch(
                    f"kernel '{kernel.name}' has no parameter '{key}'", help=did_you_mean(key, known)
                )
        return {known[key]: value for key, value in arrays.items()}
    if len(arrays) > len(buffers):
        raise ArgumentMismatch(f"kernel '{kernel.name}' has {len(buffers)} buffers; {len(arrays)} arrays were given")
    return {p.name: array for p, array in zip(buffers, arrays, strict=False)}


def _extents(kernel: Kernel, buffers: Sequence[ParameterInfo], given: Mapping[str, Any]) -> dict[str, int]:
    """Symbolic extents by name, from the arrays' shapes and the scalars; all uses agree."""
    found: dict[str, int] = {}
    for parameter in kernel.parameters:
        if parameter.shape is None and parameter.name in given and parameter.type.is_integer:
            found[parameter.name] = int(np.asarray(given[parameter.name]))
    for parameter in buffers:
        array = given.get(parameter.name)
        if array is None:
            continue
        shape = np.shape(array)
        for wanted, extent in zip(parameter.shape or (), shape, strict=False):
            if isinstance(wanted, str) and found.setdefault(wanted, extent) != extent:
                raise ArgumentMismatch(
                    f"'{parameter.name}' says that {wanted} is {extent}, another argument that it is {found[wanted]}"
                )
    for parameter in buffers:
        for wanted in parameter.shape or ():
            if isinstance(wanted, str):
                found.setdefault(wanted, _SYMBOLIC_DEFAULT)
    return found


def _checked(kernel: Kernel, parameter: ParameterInfo, shape: tuple[int, ...], array: Any) -> Array:
    found = np.asarray(array)
    if found.shape != shape:
        raise ArgumentMismatch(f"'{parameter.name}' of kernel '{kernel.name}' has shape {shape}, not {found.shape}")
    if found.dtype != parameter.type.numpy:
        raise ArgumentMismatch(f"'{parameter.name}' of kernel '{kernel.name}' is {parameter.type}, not {found.dtype}")
    return np.ascontiguousarray(found)


def _made(rng: np.random.Generator, parameter: ParameterInfo, shape: tuple[int, ...]) -> Array:
    """Random numbers: floats in [0.25, 4), small integers."""
    if parameter.type.is_float:
        return (rng.random(shape) * 3.75 + 0.25).astype(parameter.type.numpy)
    if parameter.type.kind == "bool":
        return rng.random(shape) < 0.5
    return rng.integers(0, 100, shape).astype(parameter.type.numpy)


@dataclass(frozen=True, slots=True)
class Arranged:
    """A module for the simulator, its inputs, and the names: of all its arguments, and of its outputs in order."""

    module: Operation
    inputs: list[Array]
    outputs: list[str]
    names: list[str]


def arranged(
    module: Operation, kernel: Kernel, buffers: Mapping[str, Array], scalars: Mapping[str, int | float]
) -> Arranged:
    """A copy of a lowered module with its arguments as the simulator wants them."""
    copy = module.clone()
    entry = func.entry(copy)
    body = entry.body
    attributes = func.arg_attributes(entry)
    parameters = {p.name: p for p in kernel.parameters}
    names = [p.name for p in kernel.parameters]
    b = Builder.at_start(body)
    inputs, written = list[int](), list[int]()
    for number, argument in enumerate(body.args):
        name = names[number]
        if parameters[name].shape is None:
            constant = arith.constant(b, scalars[name], argument.type)
            argument.replace_by(constant)
            continue
        type = argument.type
        assert isinstance(type, MemRefType)
        argument.type = memref(
            (max(type.elements, buffers[name].size) if type.shape[0] < 0 else type.elements,), type.element
        )
        (inputs if "xla.invariant" in attributes[number] else written).append(number)
    old = list(body.args)
    # What is written starts as its array was: it may be read as well, or written in part.
    before = [body.add_arg(old[number].type, old[number].name) for number in written]
    order = [*(old[i] for i in inputs), *before, *(old[i] for i in written)]
    body.args = order
    for i, argument in enumerate(order):
        argument.index = i
    func.set_function_type(entry, [a.type for a in order], ())
    func.set_arg_attributes(entry, [{} for _ in order])
    pairs = [n for i in range(len(written)) for n in (i, len(inputs) + i)]
    entry.attributes["warpsmith.aliases"] = at.dense_array(pairs)
    arrays = [_flat(buffers[names[i]], argument.type) for i, argument in zip((*inputs, *written), order, strict=False)]
    shown = [names[i] for i in (*inputs, *written, *written)]
    return Arranged(copy, arrays, [names[i] for i in written], shown)


def _flat(array: Array, type: object) -> Array:
    """The array's elements, padded to the span that the kernel's layout takes."""
    flat = array.reshape(-1)
    assert isinstance(type, MemRefType)
    if flat.size < type.elements:
        flat = np.concatenate([flat, np.zeros(type.elements - flat.size, flat.dtype)])
    return flat
