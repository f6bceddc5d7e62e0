"""What control flow does in the simulator: loops, branches, calls; and functions of several blocks.

Semantics are MLIR's and, for xla_gpu.loop, those of XLA's `xla.loop` (`xla/codegen/emitters/ir/xla_ops.td`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from warpsmith.arrays import Array
from warpsmith.errors import SimulationError
from warpsmith.indexing import IndexingMap
from warpsmith.indexing.points import contains
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.ssa import Block, Operation, Trait, Value
from warpsmith.ir.dialects import gpu
from warpsmith.simt.ir.interpreter import Frame, Handler, Interpreter, merge
from warpsmith.simt.ir.memory import Datum
from warpsmith.simt.ir.observe import parted
from warpsmith.simt.ir.spread import Independence, factor_of, independence

__all__ = ["CONTROL", "run_blocks"]


# --------------------------------------------------------------------------------------------------------------- loops
def _for(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    """scf.for: each thread has bounds of its own; who is done keeps what it has."""
    lower, upper, step = (frame.array(v) for v in op.operands[:3])
    active = np.ones(1, np.bool_) if frame.mask is None else frame.mask
    with np.errstate(all="ignore"):  # a thread that isn't active may have a step of 0
        counts = np.maximum(-((lower - upper) // step), 0)  # ceil((upper - lower) / step)
    if (counts != counts[0]).any() or not active.all():
        counts = np.where(active, counts, 0)
    trips = int(counts.max())
    carried: list[Datum] = [frame[v] for v in op.operands[3:]]
    free = independence(interpreter.machine, frame, op, carried, trips)
    if free is not None and all(_steps_over(op, step, *index) for index in free.indices):
        inner = Frame(frame.threads * trips, frame, trips)
        turn = np.tile(np.arange(trips, dtype=np.int64), frame.threads)
        first, by, most = (each if each.shape[0] == 1 else np.repeat(each, trips) for each in (lower, step, counts))
        running = turn < most
        inner.mask = None if running.all() else running
        inner.bind(op.body.args, [first + turn * by, *carried])
        interpreter.block(inner, op.body)
        frame.bind(op.results, carried)
        return
    outer = frame.mask
    for turn in range(trips):
        running = counts > turn
        everyone = bool(running.all())
        if not everyone:
            frame.mask = running
            parted(interpreter, frame, running, active & (counts == turn))
        frame.bind(op.body.args, [lower + turn * step, *carried])
        new = interpreter.block(frame, op.body)
        frame.mask = outer
        carried = new if everyone else [merge(running, n, o) for n, o in zip(new, carried, strict=True)]
    frame.bind(op.results, carried)


def _steps_over(loop: Operation, step: Array, index: tuple[Value, ...], elements: int) -> bool:
    """Whether an scf.for's iterations access different elements at `index`: its last part is linear in the variable."""
    factor = factor_of(index[-1], loop) if index else None
    return factor is not None and bool((abs(factor) * step >= elements).all())


def _while(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    before, after = op.regions[0].blocks[0], op.regions[1].blocks[0]
    state: list[Datum] = [frame[v] for v in op.operands]
    outer = frame.mask
    active: Array = np.ones(1, np.bool_) if outer is None else outer
    results: list[Datum] | None = None
    while True:
        frame.mask = None if active.all() else active
        frame.bind(before.args, state)
        condition, *values = interpreter.block(frame, before)
        if not isinstance(condition, np.ndarray):
            raise SimulationError("the condition of an scf.while is memory")
        results = values if results is None else [merge(active, v, r) for v, r in zip(values, results, strict=True)]
        active = active & condition
        if not active.any():
            break
        frame.mask = None if active.all() else active
        frame.bind(after.args, results)
        state = interpreter.block(frame, after)
    frame.mask = outer
    frame.bind(op.results, results)


def _symbol_points(map: IndexingMap) -> list[Array]:
    """All values of the map's symbols in lexicographic order, one array a symbol."""
    ranges = [np.arange(v.bounds.lower, v.bounds.upper + 1, dtype=np.int64) for v in map.range_vars]
    return [grid.reshape(-1) for grid in np.meshgrid(*ranges, indexing="ij")] if ranges else []


def _loop(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    """xla_gpu.loop: all symbol values; points that break a bound or constraint leave the carried values alone."""
    map = gpu.map_of(op)
    dims, inits = gpu.loop_parts(op)
    carried: list[Datum] = [frame[v] for v in inits]
    symbols = _symbol_points(map)
    trips = len(symbols[0]) if symbols else 1
    free = independence(interpreter.machine, frame, op, carried, trips)
    turns = None if free is None else _turns(frame, op, dims, symbols, free)
    if turns is not None:
        for turn in range(int(turns.max()) + 1):
            chosen = [s[turns == turn] for s in symbols]
            count = chosen[0].shape[0]
            inner = Frame(frame.threads * count, frame, count)
            values = [np.tile(s, frame.threads) for s in chosen]
            _loop_point(interpreter, inner, op, [inner.array(d) for d in dims], values, carried)
    else:
        ids = [frame.array(d) for d in dims]
        for i in range(trips):
            carried = _loop_point(interpreter, frame, op, ids, [s[i : i + 1] for s in symbols], carried)
    frame.bind(op.results, carried)


def _turns(
    frame: Frame, op: Operation, dims: Sequence[Value], symbols: Sequence[Array], free: Independence
) -> Array | None:
    """When each point of an xla_gpu.loop may run: after the earlier ones with the same indices.  None: one by one."""
    turns = np.zeros(len(symbols[0]), np.int64)
    if not free.indices:
        return turns
    if len(free.indices) > 1:
        return None
    ((index, elements),) = free.indices
    map = gpu.map_of(op)
    results = map.evaluate([frame.array(d)[:1] for d in dims], symbols)
    inner = [*symbols, *results]
    arguments: list[Value] = list(op.body.args[: len(inner)])
    if elements != 1 or any(each not in arguments for each in index) or any(frame.array(d).shape[0] > 1 for d in dims):
        return None
    columns = [np.broadcast_to(np.asarray(inner[arguments.index(each)]), turns.shape) for each in index]
    order = np.lexsort(columns)  # stable: points with the same index stay in order
    key = np.stack(columns)[:, order]
    new = np.concatenate([[True], (key[:, 1:] != key[:, :-1]).any(axis=0)])
    places = np.arange(turns.shape[0], dtype=np.int64)
    starts: Array = places * new
    first = np.maximum.accumulate(starts)
    turns[order] = places - first
    return turns


def _loop_point(
    interpreter: Interpreter, frame: Frame, op: Operation, dims: list[Array], symbols: list[Array], carried: list[Datum]
) -> list[Datum]:
    map = gpu.map_of(op)
    outer = frame.mask
    mask = frame.active(np.atleast_1d(contains(map, dims, symbols)))
    if not mask.any():
        return carried
    frame.mask = None if mask.all() else mask
    results = [np.atleast_1d(np.asarray(r, np.int64)) for r in map.evaluate(dims, symbols)]
    frame.bind(op.body.args, [*symbols, *results, *carried])
    new = interpreter.block(frame, op.body)
    frame.mask = outer
    return new if mask.all() else [merge(mask, n, o) for n, o in zip(new, carried, strict=True)]


# ------------------------------------------------------------------------------------------------------------ branches
def _if(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    condition = frame.array(op.operands[0])
    parted(interpreter, frame, frame.active(condition), frame.active(~condition))
    _branch(interpreter, frame, op, [condition, ~condition])


def _index_switch(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    """scf.index_switch: the first region is the default's."""
    cases = op.attributes["cases"]
    if not isinstance(cases, at.DenseArrayAttr):
        raise SimulationError("scf.index_switch has no list of cases")
    value = frame.array(op.operands[0])
    taken = [value == case for case in cases.values]
    _branch(interpreter, frame, op, [~np.isin(value, cases.values), *taken])


def _branch(interpreter: Interpreter, frame: Frame, op: Operation, conditions: list[Array]) -> None:
    """Run each region that some active thread takes under its mask, and merge what they yield."""
    outer = frame.mask
    found: list[Datum] | None = None
    for region, condition in zip(op.regions, conditions, strict=True):
        mask = frame.active(condition)
        if not region.blocks or not mask.any():
            continue
        frame.mask = None if mask.all() else mask
        values = interpreter.block(frame, region.blocks[0])
        frame.mask = outer
        found = values if found is None else [merge(condition, v, f) for v, f in zip(values, found, strict=True)]
    if op.results:
        # No thread is active: the values are never looked at, but must exist.
        if found is None:
            frame.mask = np.zeros(frame.threads, np.bool_)
            found = interpreter.block(frame, op.regions[0].blocks[0])
            frame.mask = outer
        frame.bind(op.results, found)


# --------------------------------------------------------------------------------------------------------------- calls
def _call(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    callee = interpreter.machine.function(op.str_attr("callee"))
    values = interpreter.call(frame, callee, [frame[v] for v in op.operands])
    frame.bind(op.results, values)


# ------------------------------------------------------------------------------------------ functions of several blocks
_BRANCHES = frozenset(("cf.br", "llvm.br"))
_CONDITIONAL = frozenset(("cf.cond_br", "llvm.cond_br"))


def run_blocks(interpreter: Interpreter, frame: Frame, blocks: Sequence[Block]) -> list[Datum]:
    """Run a control-flow graph: always the first block, in text order, that some thread is at.

    Code that came from structured loops and branches joins again that way, as it does on the machine.  A value keeps,
    for a thread that isn't in the block, what it was when the thread was last there.
    """
    everyone = np.ones(frame.threads, np.bool_) if frame.mask is None else frame.mask
    place = np.where(np.broadcast_to(everyone, (frame.threads,)), 0, len(blocks))
    number = {block: i for i, block in enumerate(blocks)}
    outer, returned = frame.mask, list[Datum]()
    while (at_block := int(place.min())) < len(blocks):
        block = blocks[at_block]
        here = place == at_block
        frame.mask = None if here.all() else here
        for op in block:
            if not op.row.traits & Trait.TERMINATOR:
                _run_merged(interpreter, frame, op, here)
                continue
            if op.name in _BRANCHES:
                _enter(frame, op.successors[0], op.operands, here)
                place[here] = number[op.successors[0]]
            elif op.name in _CONDITIONAL:
                _branch_on(interpreter, frame, op, here, place, number)
            else:
                values = [frame[v] for v in op.operands]
                returned = [merge(here, v, r) for v, r in zip(values, returned, strict=True)] if returned else values
                place[here] = len(blocks)
    frame.mask = outer
    return returned


def _run_merged(interpreter: Interpreter, frame: Frame, op: Operation, here: Array) -> None:
    """Run an op; results that other blocks use are kept for the threads that aren't here."""
    before = [
        frame.values.get(r) if frame.mask is not None and _used_outside(r, op.block) else None for r in op.results
    ]
    interpreter.op(frame, op)
    for result, old in zip(op.results, before, strict=True):
        if old is not None:
            frame[result] = merge(here, frame[result], old)


def _used_outside(value: Value, block: Block | None) -> bool:
    return any(user.block is not block for user in value.users)


def _enter(frame: Frame, block: Block, operands: Sequence[Value], here: Array) -> None:
    """Give a block's arguments their values, all at once, for the threads that branch to it."""
    values = [frame[v] for v in operands]
    for argument, value in zip(block.args, values, strict=True):
        old = frame.values.get(argument)
        frame[argument] = value if old is None else merge(here, value, old)


def _branch_on(
    interpreter: Interpreter, frame: Frame, op: Operation, here: Array, place: Array, number: Mapping[Block, int]
) -> None:
    sizes = op.attributes["operandSegmentSizes"]
    if not isinstance(sizes, at.DenseArrayAttr):
        raise SimulationError(f"{op.name} doesn't say how its operands are divided")
    condition = np.broadcast_to(frame.array(op.operands[0]), here.shape)
    split = 1 + sizes.values[1]
    parted(interpreter, frame, here & condition, here & ~condition)
    ways = ((op.operands[1:split], here & condition), (op.operands[split:], here & ~condition))
    for successor, (operands, taken) in zip(op.successors, ways, strict=True):
        if taken.any():
            _enter(frame, successor, operands, taken)
            place[taken] = number[successor]


CONTROL: dict[str, Handler] = {
    "scf.for": _for,
    "scf.if": _if,
    "scf.index_switch": _index_switch,
    "scf.while": _while,
    "xla_gpu.loop": _loop,
    "xla_gpu.pure_call": _call,
    "func.call": _call,
}
