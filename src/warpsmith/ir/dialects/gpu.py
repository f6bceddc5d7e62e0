"""The gpu dialect (thread ids, barriers, shuffles) and our xla_gpu dialect (loops over indexing maps, pure calls...).

Today's XLA spells the target-neutral half of xla_gpu as `xla.`; the parser reads both.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.indexing import IndexingMap
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.diagnostics import (
    entry,
    int_attr,
    invalid,
    need_index,
    need_types,
    need_yield,
    types_of,
    types_text,
)
from warpsmith.ir.core.operands import operand_groups
from warpsmith.ir.core.ssa import Block, Effect, Operation, OpRow, Region, Trait, Value
from warpsmith.ir.core.types import I32, INDEX, Type, element_type
from warpsmith.ir.dialects import forms, gpu_forms
from warpsmith.ir.dialects.memory_rules import access
from warpsmith.ir.text.format import Form, described

_BARRIER = ((Effect.BARRIER, None),)


# --------------------------------------------------------------------------------------------------------------- rules
def _map(op: Operation) -> at.IndexingMapAttr:
    found = op.attributes["map"]
    if not isinstance(found, at.IndexingMapAttr):
        raise invalid(op, "attribute 'map' is no indexing map")
    return found


def _loop(op: Operation) -> None:
    map = _map(op).map
    dims, inits = operand_groups(op)
    need_index(op, dims)
    if len(dims) != len(map.dim_vars):
        raise invalid(op, f"{len(dims)} dims for a map with {len(map.dim_vars)}")
    need_types(op, types_of(op.results), types_of(inits), "the results")
    wanted = [ty.INDEX] * (len(map.range_vars) + len(map.results)) + types_of(inits)
    need_types(
        op,
        types_of(entry(op, op.regions[0]).args),
        wanted,
        "the arguments of the body (symbols, map results, values that go round)",
    )
    need_yield(op, op.regions[0], "xla_gpu.yield", types_of(inits))


def _apply_indexing(op: Operation) -> None:
    map = _map(op).map
    need_index(op, op.operands)
    if len(op.operands) != len(map.dim_vars) + len(map.range_vars):
        raise invalid(
            op, f"{len(op.operands)} operands for a map with {len(map.dim_vars)} dims and {len(map.range_vars)} symbols"
        )
    if map.constraints:
        raise invalid(op, "a map with constraints", "apply_indexing only computes; a loop or an if checks constraints")
    need_types(op, types_of(op.results), [ty.INDEX] * len(map.results), "the results")


def _atomic_rmw(op: Operation) -> None:
    dest = op.operands[0].type
    if not isinstance(dest, (ty.TensorType, ty.MemRefType)) or dest.rank != len(op.operands) - 1:
        raise invalid(op, f"{len(op.operands) - 1} indices for {dest}")
    need_index(op, op.operands[1:])
    need_types(op, types_of(op.results), [dest], "the result")
    args = entry(op, op.regions[0]).args
    if len(args) != 1 or ty.element_type(args[0].type) is not dest.element:
        raise invalid(
            op,
            f"a body that takes {types_text(types_of(args))}",
            f"it takes the current value, {dest.element} or a vector of it",
        )
    need_yield(op, op.regions[0], "xla_gpu.yield", [args[0].type])


def _sync(op: Operation) -> None:
    need_types(op, types_of(op.results), types_of(op.operands), "the results")


def _shuffle_reduce(op: Operation) -> None:
    need_types(op, types_of(op.results), types_of(op.operands), "the results")
    distance = int_attr(op, "max_distance")
    if distance < 1 or distance & (distance - 1) or distance >= 64:
        raise invalid(op, f"a largest distance of {distance}", "it is a power of two below the size of a warp")


# ---------------------------------------------------------------------------------------------------------------- rows
ROWS = [
    *(
        OpRow(
            f"gpu.{name}",
            attributes=("dimension",),
            optional=("upper_bound", "xla.range"),
            form=described("  <gpu_dim:dimension><bound:upper_bound?>{}", "r0=index"),
            result_hint=name,
        )
        for name in ("thread_id", "block_id", "block_dim", "grid_dim")
    ),
    OpRow("gpu.lane_id", optional=("upper_bound", "xla.range"), form=described("<bound:upper_bound?>{}", "r0=index")),
    OpRow("gpu.barrier", (), (), effects=_BARRIER, form=forms.BARE),
    OpRow(
        "gpu.shuffle",
        ("value", "offset", "width"),
        ("shuffleResult", "valid"),
        attributes=("mode",),
        traits=Trait.GUARDED,
        effects=((Effect.BARRIER, None),),
        form=described(
            " <gpu_shuffle:mode> $value, $offset, $width{} : type(value)", "offset=i32 width=i32 r0=value r1=i1"
        ),
    ),
    OpRow(
        "xla_gpu.workgroup_id",
        attributes=("dimension",),
        optional=("xla.range",),
        form=described("  <word:dimension>{}", "r0=index"),
        result_hint="workgroup_id",
    ),
    OpRow(
        "xla_gpu.loop",
        ("dims*", "inits*"),
        ("results*",),
        attributes=("map", "operandSegmentSizes"),
        regions=1,
        traits=Trait.RECURSIVE | Trait.LOOP,
        verify=_loop,
        form=Form(gpu_forms.print_xla_loop, gpu_forms.parse_xla_loop),
        result_hint="xla_loop",
    ),
    OpRow("xla_gpu.yield", ("results*",), (), traits=Trait.TERMINATOR, form=forms.YIELD),
    OpRow(
        "xla_gpu.pure_call",
        ("operands*",),
        ("results*",),
        attributes=("callee",),
        optional=("noinline", "xla.is_reduction"),
        traits=Trait.CALL,
        form=forms.CALL,
        result_hint="pure_call",
    ),
    OpRow(
        "xla_gpu.apply_indexing",
        ("operands*",),
        ("results*",),
        attributes=("map",),
        verify=_apply_indexing,
        form=Form(gpu_forms.print_apply_indexing, gpu_forms.parse_apply_indexing),
    ),
    OpRow(
        "xla_gpu.atomic_rmw",
        ("input", "indices*"),
        regions=1,
        traits=Trait.GUARDED,
        effects=((Effect.READ, "input"), (Effect.WRITE, "input")),
        verify=_atomic_rmw,
        form=Form(gpu_forms.print_atomic_rmw, gpu_forms.parse_atomic_rmw),
        result_hint="atomic_rmw",
    ),
    OpRow(
        "xla_gpu.compare_exchange",
        ("memref", "indices*", "expected", "new"),
        ("old", "done"),
        effects=((Effect.READ, "memref"), (Effect.WRITE, "memref")),
        form=described(
            " $memref[$indices*], $expected, $new{} : type(memref)",
            "indices=index expected=elem(memref) new=elem(memref) r0=elem(memref) r1=i1",
        ),
    ),
    OpRow("xla_gpu.allocate_shared", (), effects=((Effect.ALLOCATE, None),), form=forms.TYPED, result_hint="shmem"),
    OpRow(
        "xla_gpu.sync_threads",
        ("operands*",),
        ("results*",),
        effects=_BARRIER,
        verify=_sync,
        form=forms.SYNC,
        result_hint="synced_tensor",
    ),
    OpRow(
        "xla_gpu.predicated_insert",
        ("value", "dest", "indices*", "condition"),
        traits=Trait.GUARDED,
        verify=access(1, 2, (ty.TensorType,), "a tensor"),
        form=described(
            " $value into $dest[$indices*] if $condition{} : type(dest)",
            "value=elem(dest) indices=index condition=i1 r0=dest",
        ),
    ),
    OpRow(
        "xla_gpu.predicated_extract",
        ("source", "indices*", "condition", "fallback"),
        traits=Trait.GUARDED,
        verify=access(0, 1, (ty.TensorType,), "a tensor"),
        form=described(
            " $source[$indices*] if $condition else $fallback{} : type(source)",
            "indices=index condition=i1 fallback=elem(source) r0=fallback",
        ),
    ),
    OpRow(
        "xla_gpu.shuffle_reduce",
        ("operands*",),
        ("results*",),
        attributes=("combiner", "max_distance"),
        traits=Trait.CALL,
        effects=_BARRIER,
        verify=_shuffle_reduce,
        form=described(
            "($operands*) to <i64:max_distance> combiner=<sym:combiner>{} : type(operands)", "results=operands"
        ),
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
