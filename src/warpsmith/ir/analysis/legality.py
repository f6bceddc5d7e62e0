"""Which ops may be alive at each stage of the way down: a table, and the check against it.

In: a module and the name of a stage.  Out: nothing, or InvalidIr about the first op that should be gone.

| stage   | after                       | memory                                   |
|---------|-----------------------------|------------------------------------------|
| emitted | the emitter                 | tensors of any rank                      |
| scf     | lower-loops-to-scf          | tensors of any rank; no xla_gpu.loop     |
| flat    | flatten-tensors             | tensors and vectors of rank 1 at most    |
| memref  | lower-tensors               | memrefs of rank 1 at most; no tensors    |
| llvm    | convert-to-llvm             | pointers                                 |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warpsmith.errors import InvalidIr, did_you_mean
from warpsmith.ir.core.attributes import Attribute, TypeAttr
from warpsmith.ir.core.diagnostics import invalid
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.types import FunctionType, IndexType, MemRefType, ShapedType, TensorType, Type, VectorType

__all__ = ["STAGES", "Stage", "check_stage"]

_TypeRule = Callable[[Type], str | None]


@dataclass(frozen=True, slots=True)
class Stage:
    """What may be alive: `dialects`, less the ops in `gone`; `types` says in words what is wrong with a type."""

    name: str
    dialects: frozenset[str]
    gone: frozenset[str]
    types: _TypeRule


def _any(_: Type) -> str | None:
    return None


def _rank_one(type: Type) -> str | None:
    if isinstance(type, (TensorType, VectorType)) and type.rank > 1:
        return f"a type of rank {type.rank} after flatten-tensors: {type}"
    return None


def _no_tensors(type: Type) -> str | None:
    if isinstance(type, TensorType):
        return f"a tensor after lower-tensors: {type}"
    if isinstance(type, ShapedType) and type.rank > 1:
        return f"a type of rank {type.rank} after flatten-tensors: {type}"
    return None


def _pointers(type: Type) -> str | None:
    if isinstance(type, (TensorType, MemRefType, IndexType)):
        return f"a type that LLVM lacks: {type}"
    return None


_SCALARS = frozenset({"arith", "math", "scf", "func", "builtin", "gpu", "xla_gpu", "xla_cpu", "vector"})
_LOOPS = frozenset(
    {"xla_gpu.loop", "xla_gpu.predicated_insert", "xla_gpu.predicated_extract", "xla_gpu.shuffle_reduce"}
)
_CALLS = frozenset({"xla_gpu.pure_call", "xla_gpu.allocate_shared", "xla_gpu.sync_threads"})

STAGES: dict[str, Stage] = {
    s.name: s
    for s in (
        Stage("emitted", _SCALARS | {"tensor", "memref"}, frozenset(), _any),
        Stage("scf", _SCALARS | {"tensor", "memref"}, _LOOPS, _any),
        Stage("flat", _SCALARS | {"tensor", "memref"}, _LOOPS, _rank_one),
        Stage("memref", _SCALARS | {"memref", "cf", "llvm", "nvvm"}, _LOOPS | _CALLS, _no_tensors),
        Stage(
            "llvm", frozenset({"builtin", "llvm", "nvvm"}), frozenset({"builtin.unrealized_conversion_cast"}), _pointers
        ),
    )
}
"""All stages, in order."""


def check_stage(module: Operation, stage: str) -> None:
    """Raise InvalidIr if an op or a type is alive that shouldn't be at `stage`."""
    found = STAGES.get(stage)
    if found is None:
        raise InvalidIr(f"unknown stage '{stage}'", help=did_you_mean(stage, STAGES) or f"stages: {', '.join(STAGES)}")
    checked: dict[Type, str | None] = {}

    def wrong(type: Type) -> str | None:
        if type not in checked:
            checked[type] = found.types(type)
        return checked[type]

    for op in module.walk():
        row = op.row
        if row.dialect not in found.dialects or row.name in found.gone:
            raise invalid(
                op,
                f"an op that shouldn't be alive at stage '{stage}'",
                f"dialects here: {', '.join(sorted(found.dialects))}",
            )
        types = [r.type for r in op.results]
        types += [a.type for region in op.regions for block in region.blocks for a in block.args]
        types += _signature(op.attributes.get("function_type"))
        for type in types:
            cause = wrong(type)
            if cause is not None:
                raise invalid(op, f"{cause} at stage '{stage}'")


def _signature(attribute: Attribute | None) -> list[Type]:
    if isinstance(attribute, TypeAttr) and isinstance(attribute.type, FunctionType):
        return [*attribute.type.inputs, *attribute.type.results]
    return []
