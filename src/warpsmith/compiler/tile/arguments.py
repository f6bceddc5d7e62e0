"""A tile program's arguments: arrays checked against its parameters, as the memory that a launch takes, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.errors import ArgumentMismatch, did_you_mean
from warpsmith.ir.core.types import MemRefType, Type, numpy_dtype
from warpsmith.reference.memory import array_of, memory_of
from warpsmith.tile.dispatch import Dispatched
from warpsmith.tile.frontend.values import ParameterInfo
from warpsmith.tile.model.extents import Extent
from warpsmith.tile.program import Kernel

__all__ = ["Bound", "arrays_of", "bind_arguments", "buffers_of"]


_SYMBOLIC_DEFAULT = 64  # a symbolic extent that no array gives


@dataclass(frozen=True, slots=True)
class Bound:
    """Arrays and scalars by parameter; `written` names the buffers that the kernel may write."""

    buffers: dict[str, Array]
    scalars: dict[str, int | float]
    written: tuple[str, ...]


def bind_arguments(dispatched: Dispatched, arrays: Mapping[str, Any] | Sequence[Any] | None, seed: int) -> Bound:
    """Match arrays to parameters.  ArgumentMismatch says which doesn't fit, and how."""
    kernel = dispatched.origin.program
    buffers = [p for p in kernel.parameters if p.shape is not None]
    given = _by_name(kernel, buffers, arrays)
    extents = _extents(kernel, buffers, given)
    written = tuple(each.name for each in dispatched.outputs)
    rng = np.random.default_rng(seed & 0xFFFFFFFFFFFFFFFF)
    found: dict[str, Array] = {}
    for parameter in buffers:
        shape = tuple(_extent(d, extents) for d in parameter.shape or ())
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
                    f"kernel '{kernel.name}' has no parameter '{key}'",
                    help=did_you_mean(key, known) or f"it has {', '.join(names)}",
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
    arrays = [(parameter, np.shape(given[parameter.name])) for parameter in buffers if parameter.name in given]
    while sum(_solve(parameter, shape, found) for parameter, shape in arrays):
        pass
    _unsolved(kernel, given, found)
    for parameter in buffers:
        for wanted in parameter.shape or ():
            for symbol in wanted.symbols if isinstance(wanted, Extent) else (wanted,):
                if isinstance(symbol, str):
                    found.setdefault(symbol, _SYMBOLIC_DEFAULT)
    return found


def _solve(parameter: ParameterInfo, shape: Sequence[int], found: dict[str, int]) -> bool:
    """Learn symbols from one array's shape; whether any was new."""
    before = len(found)
    for wanted, extent in zip(parameter.shape or (), shape, strict=False):
        if isinstance(wanted, str) and found.setdefault(wanted, extent) != extent:
            raise ArgumentMismatch(
                f"'{parameter.name}' says that {wanted} is {extent}, another argument that it is {found[wanted]}"
            )
        if isinstance(wanted, Extent) and (solved := wanted.solve(extent, found)) is not None:
            found[solved[0]] = solved[1]
    return len(found) > before


def _unsolved(kernel: Kernel, given: Mapping[str, Any], found: Mapping[str, int]) -> None:
    """ArgumentMismatch for a symbol that arrays depend on, and don't say."""
    for parameter in kernel.parameters:
        if parameter.name not in given:
            continue
        for d, wanted in enumerate(parameter.shape or ()):
            missing = [s for s in wanted.symbols if s not in found] if isinstance(wanted, Extent) else []
            if missing:
                extent = np.shape(given[parameter.name])[d]
                raise ArgumentMismatch(
                    f"dim {d} of '{parameter.name}' is {extent}, which doesn't say what {missing[0]} is in {wanted}",
                    help=f"give it as an argument too: {missing[0]}=...",
                )


def _extent(wanted: int | str | Extent, known: Mapping[str, int]) -> int:
    if isinstance(wanted, Extent):
        return wanted.evaluate(known)
    return known[wanted] if isinstance(wanted, str) else wanted


def _checked(kernel: Kernel, parameter: ParameterInfo, shape: tuple[int, ...], array: Any) -> Array:
    found = np.asarray(array)
    if found.shape != shape:
        symbolic = [str(d) for d in parameter.shape or () if not isinstance(d, int)]
        written = f" ({', '.join(map(str, parameter.shape or ()))})" if symbolic else ""
        raise ArgumentMismatch(
            f"'{parameter.name}' of kernel '{kernel.name}' has shape {shape}{written}, not {found.shape}"
        )
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


def buffers_of(kernel: Dispatched, types: Sequence[Type], bound: Bound) -> list[Array | np.generic | None]:
    """What a launch takes, an argument each: flat memory, or a number of the argument's type in the IR."""
    found: list[Array | np.generic | None] = []
    for parameter, type in zip(kernel.origin.program.parameters, types, strict=True):
        if isinstance(type, MemRefType):
            found.append(memory_of(parameter, bound.buffers[parameter.name], type, copied=False))
        else:
            found.append(np.array([bound.scalars[parameter.name]]).astype(numpy_dtype(type))[0])
    return found


def arrays_of(kernel: Dispatched, outputs: Sequence[Array], bound: Bound) -> dict[str, Array]:
    """The buffers that a kernel writes, by parameter, from the memory of its outputs."""
    written = [p for p, each in zip(kernel.origin.program.parameters, kernel.arguments, strict=True) if each.is_output]
    return {
        each.name: array_of(each, memory.reshape(-1), bound.buffers[each.name])
        for each, memory in zip(written, outputs, strict=True)
    }
