"""A plain interpreter of tensor-level IR, one thread at a time: what the pass tests compare results with.

Tensors are numpy arrays in memory order that inserts change in place, as on the machine.  Every index is checked, so a
pass that makes a program read or write out of bounds is caught.  No barriers, no shuffles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from warpsmith.indexing.points import contains
from warpsmith.ir.core.attributes import DenseArrayAttr, DenseAttr, FloatAttr, IntegerAttr
from warpsmith.ir.core.ssa import Block, Operation, Value
from warpsmith.ir.core.types import ShapedType, TensorType, VectorType, numpy_dtype
from warpsmith.ir.dialects import func, gpu

Frame = dict[Value, Any]


class Machine:
    """Runs functions of one module for one thread."""

    def __init__(self, module: Operation, ids: dict[str, int] | None = None) -> None:
        self.functions = func.symbols(module)
        self.ids = ids or {}

    def call(self, name: str, arguments: Sequence[Any]) -> list[Any]:
        block = self.functions[name].body
        return self.block(block, dict(zip(block.args, arguments, strict=True)))

    def block(self, block: Block, frame: Frame) -> list[Any]:
        for op in block:
            if op is block.last:
                return [frame[v] for v in op.operands]
            results = self.op(op, frame)
            for value, result in zip(op.results, results, strict=True):
                frame[value] = result
        raise AssertionError("a block without a terminator")

    def op(self, op: Operation, frame: Frame) -> Sequence[Any]:
        special = _SPECIAL.get(op.name)
        if special is not None:
            return special(self, op, frame)
        if op.row.numpy is None:
            raise AssertionError(f"the test interpreter doesn't know {op.name}")
        with np.errstate(all="ignore"):
            result = op.row.numpy(op, *(np.asarray(frame[v]) for v in op.operands))
        results = result if isinstance(result, tuple) else (result,)
        scalar = [not isinstance(r.type, VectorType) for r in op.results]
        return [np.asarray(r).reshape(()) if s else r for r, s in zip(results, scalar, strict=True)]


def _constant(_m: Machine, op: Operation, _f: Frame) -> list[Any]:
    value = op.attributes["value"]
    if isinstance(value, IntegerAttr):
        return [np.array(value.value, numpy_dtype(value.type))]
    if isinstance(value, FloatAttr):
        return [np.array(value.scalar)]
    assert isinstance(value, DenseAttr)
    return [value.array]


def _id(m: Machine, op: Operation, _f: Frame) -> list[Any]:
    return [np.int64(m.ids[f"{op.name.rpartition('.')[2]}_{gpu.dimension(op)}"])]


def _apply(_m: Machine, op: Operation, f: Frame) -> list[Any]:
    map = gpu.map_of(op)
    values = [int(f[v]) for v in op.operands]
    return [np.int64(v) for v in map.evaluate(values[: map.num_dims], values[map.num_dims :])]


def place(type: ShapedType, indices: Sequence[int]) -> int:
    """The place in memory of an element."""
    assert len(indices) == len(type.shape)
    order = range(len(type.shape) - 1, -1, -1)
    if isinstance(type, TensorType) and type.minor_to_major is not None:
        order = type.minor_to_major
    position, stride = 0, 1
    for d in order:
        if not 0 <= indices[d] < type.shape[d]:
            raise IndexError(f"index {list(indices)} outside {type}")
        position += indices[d] * stride
        stride *= type.shape[d]
    return position


def _at(op: Operation, f: Frame, base: int, indices: Sequence[Value]) -> int:
    type = op.operands[base].type
    assert isinstance(type, ShapedType)
    return place(type, [int(f[v]) for v in indices])


def _extract(_m: Machine, op: Operation, f: Frame) -> list[Any]:
    return [np.array(f[op.operands[0]].reshape(-1)[_at(op, f, 0, op.operands[1:])])]


def _insert(_m: Machine, op: Operation, f: Frame) -> list[Any]:
    f[op.operands[1]].reshape(-1)[_at(op, f, 1, op.operands[2:])] = f[op.operands[0]]
    return [f[op.operands[1]]]


def _read(_m: Machine, op: Operation, f: Frame) -> list[Any]:
    type = op.results[0].type
    assert isinstance(type, VectorType)
    start = _at(op, f, 0, op.operands[1:2])
    assert start + type.elements <= f[op.operands[0]].size
    return [f[op.operands[0]].reshape(-1)[start : start + type.elements].copy()]


def _write(_m: Machine, op: Operation, f: Frame) -> list[Any]:
    start = _at(op, f, 1, op.operands[2:3])
    value = f[op.operands[0]]
    assert start + value.size <= f[op.operands[1]].size
    f[op.operands[1]].reshape(-1)[start : start + value.size] = value
    return [f[op.operands[1]]]


def _position(op: Operation, f: Frame, operands: Sequence[Value]) -> int:
    static = op.attributes["static_position"]
    assert isinstance(static, DenseArrayAttr)
    return int(f[operands[0]]) if operands else static.values[0]


def _vector_extract(_m: Machine, op: Operation, f: Frame) -> list[Any]:
    return [np.array(f[op.operands[0]][_position(op, f, op.operands[1:])])]


def _vector_insert(_m: Machine, op: Operation, f: Frame) -> list[Any]:
    changed = f[op.operands[1]].copy()
    changed[_position(op, f, op.operands[2:])] = f[op.operands[0]]
    return [changed]


def _from_elements(_m: Machine, op: Operation, f: Frame) -> list[Any]:
    return [np.array([f[v] for v in op.operands], numpy_dtype(op.results[0].type))]


def _for(m: Machine, op: Operation, f: Frame) -> list[Any]:
    lower, upper, step = (int(f[v]) for v in op.operands[:3])
    carried = [f[v] for v in op.operands[3:]]
    for i in range(lower, upper, step):
        f.update(zip(op.body.args, [np.int64(i), *carried], strict=True))
        carried = m.block(op.body, f)
    return carried


def _if(m: Machine, op: Operation, f: Frame) -> list[Any]:
    region = op.regions[0 if f[op.operands[0]] else 1]
    return m.block(region.blocks[0], f) if region.blocks else []


def _switch(m: Machine, op: Operation, f: Frame) -> list[Any]:
    cases = op.attributes["cases"]
    assert isinstance(cases, DenseArrayAttr)
    value = int(f[op.operands[0]])
    return m.block(op.regions[cases.values.index(value) + 1 if value in cases.values else 0].blocks[0], f)


def _loop(m: Machine, op: Operation, f: Frame) -> list[Any]:
    map = gpu.map_of(op)
    dims, inits = gpu.loop_parts(op)
    carried = [f[v] for v in inits]
    points = [int(f[v]) for v in dims]
    for ivs in product(*(range(v.bounds.lower, v.bounds.upper + 1) for v in map.symbol_vars)):
        if contains(map, points, ivs):
            results = map.evaluate(points, ivs)
            f.update(zip(op.body.args, [*map_int64(ivs), *map_int64(results), *carried], strict=True))
            carried = m.block(op.body, f)
    return carried


def map_int64(values: Sequence[int]) -> list[np.int64]:
    return [np.int64(v) for v in values]


def _call(m: Machine, op: Operation, f: Frame) -> list[Any]:
    return m.call(op.str_attr("callee"), [f[v] for v in op.operands])


def _atomic(m: Machine, op: Operation, f: Frame) -> list[Any]:
    array, at = f[op.operands[0]].reshape(-1), _at(op, f, 0, op.operands[1:])
    f[op.body.args[0]] = np.array(array[at])
    (array[at],) = m.block(op.body, f)
    return [f[op.operands[0]]]


def _predicated_insert(_m: Machine, op: Operation, f: Frame) -> list[Any]:
    value, dest, *indices, condition = op.operands
    if f[condition]:
        f[dest].reshape(-1)[_at(op, f, 1, indices)] = f[value]
    return [f[dest]]


def _predicated_extract(_m: Machine, op: Operation, f: Frame) -> list[Any]:
    source, *indices, condition, fallback = op.operands
    return [np.array(f[source].reshape(-1)[_at(op, f, 0, indices)]) if f[condition] else f[fallback]]


_SPECIAL: dict[str, Callable[[Machine, Operation, Frame], Sequence[Any]]] = {
    "arith.constant": _constant,
    "gpu.thread_id": _id,
    "gpu.block_id": _id,
    "xla_gpu.workgroup_id": _id,
    "xla_gpu.apply_indexing": _apply,
    "xla_gpu.loop": _loop,
    "xla_gpu.pure_call": _call,
    "func.call": _call,
    "xla_gpu.atomic_rmw": _atomic,
    "xla_gpu.predicated_insert": _predicated_insert,
    "xla_gpu.predicated_extract": _predicated_extract,
    "tensor.extract": _extract,
    "tensor.insert": _insert,
    "tensor.from_elements": _from_elements,
    "vector.transfer_read": _read,
    "vector.transfer_write": _write,
    "vector.extract": _vector_extract,
    "vector.insert": _vector_insert,
    "vector.from_elements": _from_elements,
    "scf.for": _for,
    "scf.if": _if,
    "scf.index_switch": _switch,
}


def run_kernel(
    module: Operation, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], threads: int, blocks: int
) -> list[np.ndarray]:
    """Run the entry for every thread of a one-dimensional launch on copies; gives the outputs, flat."""
    arguments = [a.copy() for a in (*inputs, *outputs)]
    entry = func.entry(module).str_attr("sym_name")
    for b in range(blocks):
        for t in range(threads):
            ids = {"thread_id_x": t, "block_id_x": b, "workgroup_id_x": b}
            Machine(module, ids).call(entry, arguments)
    return [a.reshape(-1) for a in arguments[len(inputs) :]]
