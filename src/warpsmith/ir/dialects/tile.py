"""The tile dialect: a kernel as its author wrote it, before each primitive has a lowering.

A buffer is a memref of its logical shape; how its elements are spread over threads and addresses is the attribute
`layout` of the op that defines it.  Dispatch (`warpsmith.tile.dispatch`) rewrites all of this to scf, memref and
vector.

    %A_smem = tile.alloc {scope = "shared", layout = #tile.layout<...>} : memref<32x8xf32, 3>
    %a = tile.region %A_smem[%c0, %c0] {extents = array<i64: 32, 8>}
    tile.copy %a, %b {scope = "warp", roles = ["dst", "src"]}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Effect, Operation, OpRow, Value
from warpsmith.ir.core.types import INDEX, MemRefType, Type, memref

__all__ = ["PRIMITIVES", "PRIVATE", "ROWS", "SHARED", "is_primitive", "region", "scope_id"]

SHARED, PRIVATE = 3, 5
"""Memory spaces of a block's shared memory and of a thread's registers; kernel arguments are in space 0."""

PRIMITIVES: tuple[str, ...] = (
    *("copy", "copy_async", "permute_layout", "gemm", "gemm_async"),
    *("fill", "memset", "zero", "cast"),
    *("sqrt", "exp", "exp2", "log", "log2", "reciprocal", "silu", "abs", "neg", "relu", "rsqrt", "tanh", "sigmoid"),
    *("sin", "cos", "erf", "floor", "ceil", "square"),
    *("add", "sub", "mul", "fdiv", "maximum", "minimum", "fma", "select"),
    *("sum", "max", "min"),
    *("binary_reduce", "unary_reduce", "binary_chain", "reduce_negate", "compose_op"),
)
"""Every primitive of the surface, also those that no variant takes yet."""

_UNKNOWN = ((Effect.UNKNOWN, None),)

ROWS = [
    OpRow("tile.match_buffer", ("source", "symbolic*"), attributes=("layout", "dtype"), optional=("strides", "by")),
    OpRow("tile.device_entry", (), (), effects=_UNKNOWN),
    OpRow("tile.scope_id", (), ("ids*",), attributes=("kind",), optional=("extents", "preferred")),
    OpRow(
        "tile.alloc",
        (),
        attributes=("scope", "layout", "dtype"),
        optional=("alignment",),
        effects=((Effect.ALLOCATE, None),),
    ),
    OpRow("tile.view", ("source", "offsets*"), attributes=("layout", "dtype"), optional=("kind",)),
    OpRow("tile.region", ("buffer", "mins*"), attributes=("extents",)),
    OpRow("tile.load", ("buffer", "indices*"), effects=((Effect.READ, "buffer"),)),
    OpRow("tile.store", ("value", "buffer", "indices*"), (), effects=((Effect.WRITE, "buffer"),)),
    OpRow("tile.break", (), (), effects=_UNKNOWN),
    OpRow("tile.continue", (), (), effects=_UNKNOWN),
    *(
        OpRow(
            f"tile.{name}",
            ("operands*",),
            (),
            attributes=("scope", "roles", "dtypes"),
            optional=("config", "dispatch"),
            effects=_UNKNOWN,
        )
        for name in PRIMITIVES
    ),
]

_CALLS = frozenset(f"tile.{name}" for name in PRIMITIVES)


def is_primitive(op: Operation) -> bool:
    """Whether the op is a call of a tile primitive."""
    return op.name in _CALLS


def scope_id(b: Builder, kind: str, extents: Sequence[int] | None, count: int) -> list[Value]:
    """`count` ids of one kind; `extents` is None where they are to be inferred."""
    attributes: dict[str, at.Attribute] = {"kind": at.string(kind)}
    if extents is not None:
        attributes["extents"] = at.dense_array(extents)
    return list(b.create("tile.scope_id", (), [INDEX] * count, attributes).results)


def region(b: Builder, buffer: Value, mins: Sequence[Value], extents: Sequence[int]) -> Value:
    """A box of a buffer: it begins at `mins` and is `extents` wide."""
    assert isinstance(buffer.type, MemRefType)
    type = memref(extents, buffer.type.element, buffer.type.space)
    return b.op1("tile.region", (buffer, *mins), type, {"extents": at.dense_array(extents)}, buffer.name)


def buffer_op(
    b: Builder,
    name: str,
    operands: Sequence[Value],
    type: Type,
    attributes: Mapping[str, at.Attribute],
    hint: str,
) -> Value:
    """One of the ops that define a buffer."""
    return b.op1(name, operands, type, attributes, hint)


def call(
    b: Builder,
    primitive: str,
    operands: Sequence[Value],
    roles: Sequence[str],
    dtypes: Sequence[str],
    scope: str,
    config: Mapping[str, at.Attribute] | None = None,
    dispatch: str | None = None,
) -> Operation:
    """A primitive on regions and scalars; `roles` names each operand's part in it, `dtypes` its type."""
    attributes: dict[str, at.Attribute] = {
        "scope": at.string(scope),
        "roles": at.array(at.string(role) for role in roles),
        "dtypes": at.array(at.string(dtype) for dtype in dtypes),
    }
    if config:
        attributes["config"] = at.dictionary(config)
    if dispatch is not None:
        attributes["dispatch"] = at.string(dispatch)
    return b.create(f"tile.{primitive}", operands, (), attributes)
