"""The gpu dialect (thread ids, barriers, shuffles) and our xla_gpu dialect (loops over indexing maps, pure calls...).

Today's XLA spells the target-neutral half of xla_gpu as `xla.`; the parser reads both.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.indexing import IndexingMap
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Block, Effect, Operation, OpRow, Region, Trait, Value
from warpsmith.ir.core.types import I32, INDEX, Type, element_type

_BARRIER = ((Effect.BARRIER, None),)

ROWS = [
    *(
        OpRow(
            f"gpu.{name}",
            attributes=("dimension",),
            optional=("upper_bound", "xla.range"),
            syntax="gpu_id",
            result_hint=name,
        )
        for name in ("thread_id", "block_id", "block_dim", "grid_dim")
    ),
    OpRow("gpu.lane_id", optional=("upper_bound", "xla.range"), syntax="nullary"),
    OpRow("gpu.barrier", (), (), effects=_BARRIER, syntax="nullary"),
    OpRow(
        "gpu.shuffle",
        ("value", "offset", "width"),
        ("shuffleResult", "valid"),
        attributes=("mode",),
        effects=((Effect.BARRIER, None),),
        syntax="gpu_shuffle",
    ),
    OpRow(
        "xla_gpu.workgroup_id",
        attributes=("dimension",),
        optional=("xla.range",),
        syntax="workgroup_id",
        result_hint="workgroup_id",
    ),
    OpRow(
        "xla_gpu.loop",
        ("dims*", "inits*"),
        ("results*",),
        attributes=("map", "operandSegmentSizes"),
        regions=1,
        traits=Trait.RECURSIVE | Trait.LOOP,
        syntax="xla_loop",
        result_hint="xla_loop",
    ),
    OpRow("xla_gpu.yield", ("results*",), (), traits=Trait.TERMINATOR, syntax="yield"),
    OpRow(
        "xla_gpu.pure_call",
        ("operands*",),
        ("results*",),
        attributes=("callee",),
        optional=("noinline", "xla.is_reduction"),
        traits=Trait.CALL,
        syntax="call",
        result_hint="pure_call",
    ),
    OpRow("xla_gpu.apply_indexing", ("operands*",), ("results*",), attributes=("map",), syntax="apply_indexing"),
    OpRow(
        "xla_gpu.atomic_rmw",
        ("input", "indices*"),
        regions=1,
        effects=((Effect.READ, "input"), (Effect.WRITE, "input")),
        syntax="atomic_rmw",
        result_hint="atomic_rmw",
    ),
    OpRow(
        "xla_gpu.compare_exchange",
        ("memref", "indices*", "expected", "new"),
        ("old", "done"),
        effects=((Effect.READ, "memref"), (Effect.WRITE, "memref")),
        syntax="compare_exchange",
    ),
    OpRow(
        "xla_gpu.allocate_shared", (), effects=((Effect.ALLOCATE, None),), syntax="allocate_shared", result_hint="shmem"
    ),
    OpRow(
        "xla_gpu.sync_threads",
        ("operands*",),
        ("results*",),
        effects=_BARRIER,
        syntax="sync_threads",
        result_hint="synced_tensor",
    ),
    OpRow("xla_gpu.predicated_insert", ("value", "dest", "indices*", "condition"), syntax="predicated_insert"),
    OpRow("xla_gpu.predicated_extract", ("source", "indices*", "condition", "fallback"), syntax="predicated_extract"),
    OpRow(
        "xla_gpu.shuffle_reduce",
        ("operands*",),
        ("results*",),
        attributes=("combiner", "max_distance"),
        traits=Trait.CALL,
        effects=_BARRIER,
        syntax="shuffle_reduce",
    ),
]


def thread_id(b: Builder, dimension: str, count: int) -> Value:
    """The thread's index in its block along `dimension`, in [0, count-1]."""
    return _id(b, "gpu.thread_id", dimension, count, f"thread_id_{dimension}")


def block_id(b: Builder, dimension: str, count: int) -> Value:
    """The block's index in the grid along `dimension`, in [0, count-1]."""
    return _id(b, "gpu.block_id", dimension, count, f"block_id_{dimension}")


def _id(b: Builder, name: str, dimension: str, count: int, hint: str) -> Value:
    attributes: dict[str, at.Attribute] = {
        "dimension": at.opaque(f"#gpu<dim {dimension}>"),
        "xla.range": at.int_range(0, count - 1),
    }
    return b.op1(name, (), INDEX, attributes, hint)


def workgroup_id(b: Builder, dimension: str, count: int) -> Value:
    """The work group's index: a block on a GPU, a piece of work for one core on a CPU."""
    attributes: dict[str, at.Attribute] = {"dimension": at.string(dimension), "xla.range": at.int_range(0, count - 1)}
    return b.op1("xla_gpu.workgroup_id", (), INDEX, attributes, f"workgroup_id_{dimension}")


def dimension(op: Operation) -> str:
    """x, y or z of an id op."""
    found = op.attributes["dimension"]
    return found.text[-2] if isinstance(found, at.OpaqueAttr) else op.str_attr("dimension")


def loop(
    b: Builder,
    dims: Sequence[Value],
    map: IndexingMap,
    inits: Sequence[Value],
    *,
    result_names: Sequence[str] = (),
    iter_names: Sequence[str] = (),
) -> Operation:
    """An xla_gpu.loop with an empty body: block arguments are the symbols, the map's results, the iter args."""
    symbols = [v.name for v in map.range_vars]
    results = list(result_names) or [f"dim{i}" for i in range(len(map.results))]
    iters = list(iter_names) or ["iter"] * len(inits)
    count = len(symbols) + len(results)
    block = Block([INDEX] * count + [v.type for v in inits], [*symbols, *results, *iters])
    attributes: dict[str, at.Attribute] = {
        "map": at.indexing_map(map),
        "operandSegmentSizes": at.dense_array((len(dims), len(inits)), I32),
    }
    return b.create("xla_gpu.loop", [*dims, *inits], [v.type for v in inits], attributes, (Region((block,)),))


def loop_parts(op: Operation) -> tuple[list[Value], list[Value]]:
    """The dims and the inits of an xla_gpu.loop."""
    count = len(op.operands) - len(op.results)
    return op.operands[:count], op.operands[count:]


def map_of(op: Operation) -> IndexingMap:
    """The indexing map of an xla_gpu.loop or apply_indexing."""
    found = op.attributes["map"]
    assert isinstance(found, at.IndexingMapAttr)
    return found.map


def yield_(b: Builder, values: Sequence[Value]) -> Operation:
    """`xla_gpu.yield`: what an iteration hands on."""
    return b.create("xla_gpu.yield", values)


def apply_indexing(b: Builder, map: IndexingMap, operands: Sequence[Value]) -> list[Value]:
    """The map's results at `operands` (dims, then symbols)."""
    op = b.create("xla_gpu.apply_indexing", operands, [INDEX] * len(map.results), {"map": at.indexing_map(map)})
    return list(op.results)


def pure_call(b: Builder, callee: str, operands: Sequence[Value], results: Sequence[Type]) -> list[Value]:
    """`xla_gpu.pure_call`: a call without effects, which may be moved, repeated or dropped; its results."""
    return list(b.create("xla_gpu.pure_call", operands, results, {"callee": at.symbol(callee)}).results)


def allocate_shared(b: Builder, type: Type) -> Value:
    """A tile in the block's shared memory, its contents unknown."""
    return b.op1("xla_gpu.allocate_shared", (), type, hint="shmem")


def sync_threads(b: Builder, tensors: Sequence[Value]) -> list[Value]:
    """Wait for the block's threads: the tensors as they are once all have written."""
    return list(b.create("xla_gpu.sync_threads", tensors, [v.type for v in tensors], hint="synced_tensor").results)


def shuffle_mode(op: Operation) -> str:
    """How a `gpu.shuffle` picks lanes: xor, up, down, idx; whatever else its attribute says."""
    mode = op.attributes["mode"]
    text = mode.text if isinstance(mode, at.OpaqueAttr) else op.str_attr("mode")
    return text.removeprefix("#gpu<shuffle_mode ").removesuffix(">")


def shuffle_reduce(b: Builder, combiner: str, values: Sequence[Value], distance: int) -> list[Value]:
    """Combine lanes of a warp pairwise at distances `distance`, half of it, .. 1 by function `combiner`."""
    attributes = {"combiner": at.symbol(combiner), "max_distance": at.integer_attr(distance, at.I64)}
    return list(b.create("xla_gpu.shuffle_reduce", values, [v.type for v in values], attributes).results)


def atomic_rmw(b: Builder, dest: Value, indices: Sequence[Value]) -> Operation:
    """A read-modify-write of one element of a tensor; its body takes what is there and yields what shall be."""
    block = Block((element_type(dest.type),), ("current",))
    return b.create("xla_gpu.atomic_rmw", (dest, *indices), (dest.type,), None, (Region((block,)),))


def predicated_extract(b: Builder, source: Value, indices: Sequence[Value], condition: Value, fallback: Value) -> Value:
    """An element of a tensor where the condition holds, else `fallback`."""
    return b.op1("xla_gpu.predicated_extract", (source, *indices, condition, fallback), fallback.type)
