"""Rules of ops that talk to other devices, to the host, or run while others do.

In: an instruction.  Out: the shape of its result.  `DEVICES` is the table; `asynchronous` is the rule of the `-start`,
`-update` and `-done` forms that any op may have.
"""

from __future__ import annotations

from typing import cast

from warpsmith.hlo.attributes import IotaGroups, MeshGroups
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.shapes import UNBOUNDED, AnyShape, Shape, TupleShape
from warpsmith.hlo.verifier.calls import check_token
from warpsmith.hlo.verifier.common import (
    TOKEN,
    Rule,
    array_operand,
    brief,
    compatible,
    dimensions,
    fail,
    of_dims,
    one_or_tuple,
    scalar,
)
from warpsmith.hlo.verifier.reductions import check_function, combiner_types

__all__ = ["DEVICES", "asynchronous"]

_U32 = scalar("u32")


def _operand_shapes(instruction: HloInstruction) -> list[AnyShape]:
    return [operand.shape for operand in instruction.operands]


def _group_size(instruction: HloInstruction) -> int | None:
    """How many devices a group has, None where the text doesn't say; ids are checked."""
    groups = instruction.attributes.get("replica_groups")
    if isinstance(groups, IotaGroups):
        return groups.dims[-1]
    if isinstance(groups, MeshGroups):
        groups = groups.groups()
    if not isinstance(groups, tuple) or not groups:
        return None
    lists = [cast("tuple[int, ...]", each) for each in cast("tuple[object, ...]", groups) if isinstance(each, tuple)]
    ids = [each for group in lists for each in group]
    if not all(lists) or sorted(ids) != list(range(len(ids))):
        raise fail(instruction, "groups.ids", f"replica_groups of {instruction.opcode} is {groups}")
    if "all-reduce" not in instruction.opcode and len({len(group) for group in lists}) > 1:
        raise fail(
            instruction,
            "groups.ids",
            f"the groups of {instruction.opcode} have different sizes",
            help="only all-reduce takes groups of different sizes",
        )
    return len(lists[0]) if lists else None


def _all_reduce(instruction: HloInstruction) -> AnyShape:
    _group_size(instruction)
    _check_combiner(instruction)
    for index in range(len(instruction.operands)):
        array_operand(instruction, index)
    return one_or_tuple(_operand_shapes(instruction))


def _check_combiner(instruction: HloInstruction) -> None:
    """Two scalars of one type make a third; the arrays may be narrower, as XLA's promoted all-reduces are."""
    called = instruction.attr("to_apply", HloComputation)
    dtype = called.parameters[0].shape.leaves()[0].dtype if called.parameters else _U32.dtype
    check_function(instruction, called, [dtype, dtype], instruction.opcode)
    combiner_types(instruction, called, [dtype])
    for operand in instruction.operands:
        for leaf in operand.shape.leaves():
            if leaf.is_array and leaf.dtype.kind is not dtype.kind:
                raise fail(
                    instruction,
                    "function.parameters",
                    f"{instruction.opcode} of {leaf.dtype} by '{called.name}' of {dtype}",
                )


def _along(instruction: HloInstruction) -> int:
    dims = instruction.ints("dimensions")
    if len(dims) != 1:
        raise fail(instruction, "dimensions.count", f"{instruction.opcode} takes one dimension, not {len(dims)}")
    return dims[0]


def _results(instruction: HloInstruction, shape: AnyShape) -> list[AnyShape]:
    """The arrays that a variadic op makes."""
    count = len(instruction.operands)
    if count == 1 and isinstance(shape, Shape):
        return [shape]
    if not isinstance(shape, TupleShape) or len(shape.elements) != count:
        raise fail(instruction, "result.shape", f"{instruction.opcode} of {count} operands makes {brief(shape)}")
    return list(shape.elements)


def _resized(instruction: HloInstruction, shape: AnyShape, grows: bool) -> AnyShape:
    """Operands whose dimension `dimensions` grows or shrinks by the number of devices, taken from the result."""
    size, along = _group_size(instruction), _along(instruction)
    expected: list[AnyShape] = []
    for index, result in enumerate(_results(instruction, shape)):
        if not instruction.operands[index].shape.leaves()[0].is_array:  # a token keeps the order beside arrays
            expected.append(instruction.operands[index].shape)
            continue
        operand = array_operand(instruction, index)
        dimensions(instruction, operand.rank)
        if not isinstance(result, Shape) or result.rank != operand.rank:
            raise fail(instruction, "result.shape", f"{instruction.opcode} of {brief(operand)} makes {brief(result)}")
        small, large = (operand, result) if grows else (result, operand)
        a, b = small.dims[along], large.dims[along]
        known = a > 0 and UNBOUNDED not in (a, b)
        if known and (b % a or (size is not None and size > 1 and b != a * size)):
            raise fail(
                instruction,
                "groups.shards",
                f"{instruction.opcode} turns {operand.dims[along]} into {result.dims[along]} elements "
                f"along dimension {along}" + (f" among {size} devices" if size else ""),
            )
        dims = (*operand.dims[:along], result.dims[along], *operand.dims[along + 1 :])
        expected.append(of_dims(operand.dtype, dims))
    return expected[0] if isinstance(shape, Shape) else TupleShape(tuple(expected))


def _all_gather(instruction: HloInstruction) -> AnyShape:
    return _resized(instruction, instruction.shape, grows=True)


def _reduce_scatter(instruction: HloInstruction) -> AnyShape:
    _check_combiner(instruction)
    return _resized(instruction, instruction.shape, grows=False)


def _all_gather_start(instruction: HloInstruction) -> AnyShape:
    operands, made = _start_parts(instruction)
    given = one_or_tuple(_operand_shapes(instruction))
    if not compatible(operands, given):
        raise fail(instruction, "async.shape", f"{instruction.opcode} of {brief(given)} carries {brief(operands)}")
    return TupleShape((operands, _resized(instruction, made, grows=True)))


def _start_parts(instruction: HloInstruction) -> tuple[AnyShape, AnyShape]:
    """The first two elements of an asynchronous op's tuple: its operands and its results."""
    shape = instruction.shape
    if not isinstance(shape, TupleShape) or len(shape.elements) < 2:
        raise fail(instruction, "async.shape", f"{instruction.opcode} makes {brief(shape)}")
    return shape.elements[0], shape.elements[1]


def _all_to_all(instruction: HloInstruction) -> AnyShape:
    _group_size(instruction)
    shapes = [array_operand(instruction, index) for index in range(len(instruction.operands))]
    if "dimensions" in instruction.attributes:
        dimensions(instruction, shapes[0].rank)
        _along(instruction)
    for shape in shapes:
        if not compatible(shape, shapes[0]):
            raise fail(instruction, "operand.sizes", f"all-to-all of {brief(shapes[0])} and {brief(shape)}")
    if len(shapes) == 1 and isinstance(instruction.shape, Shape):
        return shapes[0]
    return TupleShape(tuple(shapes))


def _ragged_all_to_all(instruction: HloInstruction) -> AnyShape:
    _group_size(instruction)
    if len(instruction.operands) != 6:
        raise fail(
            instruction, "opcode.operands", f"ragged-all-to-all takes 6 operands, not {len(instruction.operands)}"
        )
    return array_operand(instruction, 1)


def _collective_broadcast(instruction: HloInstruction) -> AnyShape:
    return one_or_tuple(_operand_shapes(instruction))


def _check_pairs(instruction: HloInstruction) -> None:
    pairs = cast("tuple[object, ...]", instruction.attr("source_target_pairs", tuple))
    seen: tuple[set[int], set[int]] = (set(), set())
    for pair in pairs:
        ids = cast("tuple[int, ...]", pair) if isinstance(pair, tuple) else ()
        if len(ids) != 2 or min(ids) < 0 or ids[0] in seen[0] or ids[1] in seen[1]:
            raise fail(instruction, "pairs.distinct", f"source_target_pairs has the pair {pair}")
        seen[0].add(ids[0])
        seen[1].add(ids[1])


def _collective_permute(instruction: HloInstruction) -> AnyShape:
    if len(instruction.operands) == 4:
        return instruction.operands[1].shape  # in place, at offsets: buffers, then where to read and write
    _check_pairs(instruction)
    return one_or_tuple(_operand_shapes(instruction))


def _collective_permute_start(instruction: HloInstruction) -> AnyShape:
    operands, made = _start_parts(instruction)
    if len(instruction.operands) != 4:
        _check_pairs(instruction)
        given = one_or_tuple(_operand_shapes(instruction))
        if not compatible(operands, given) or not compatible(made, given):
            raise fail(instruction, "async.shape", f"{instruction.opcode} of {brief(given)} makes {instruction.shape}")
    return instruction.shape


def _second(instruction: HloInstruction) -> AnyShape:
    """What a `-done` takes out of its `-start`'s tuple."""
    operand = instruction.operands[0]
    if not isinstance(operand.shape, TupleShape) or len(operand.shape.elements) < 2:
        raise fail(instruction, "async.shape", f"{instruction.opcode} takes '{operand.name}' of {brief(operand.shape)}")
    return operand.shape.elements[1]


def _same(instruction: HloInstruction) -> AnyShape:
    return instruction.operands[0].shape


def _copy_start(instruction: HloInstruction) -> AnyShape:
    operand = instruction.operands[0].shape
    return TupleShape((operand, operand, _U32))


def _copy_done(instruction: HloInstruction) -> AnyShape:
    source = _second(instruction)
    made = cast("TupleShape", instruction.operands[0].shape).elements[0]
    if not compatible(source, made):
        raise fail(instruction, "async.shape", f"copy-done copies {brief(source)} to {brief(made)}")
    return made


def _id(instruction: HloInstruction) -> AnyShape:
    return _U32


def _infeed(instruction: HloInstruction) -> AnyShape:
    check_token(instruction, 0)
    shape = instruction.shape
    if not isinstance(shape, TupleShape) or not shape.elements:
        raise fail(instruction, "async.shape", f"infeed makes data and a token, not {brief(shape)}")
    return TupleShape((shape.elements[0], TOKEN))


def _outfeed(instruction: HloInstruction) -> AnyShape:
    check_token(instruction, 1)
    stated = instruction.attributes.get("outfeed_shape")
    if isinstance(stated, Shape | TupleShape) and not compatible(stated, instruction.operands[0].shape):
        raise fail(
            instruction,
            "operand.sizes",
            f"outfeed_shape is {brief(stated)}, the data {brief(instruction.operands[0].shape)}",
        )
    return TOKEN


def _send(instruction: HloInstruction) -> AnyShape:
    check_token(instruction, 1)
    return TupleShape((instruction.operands[0].shape, _U32, TOKEN))


def _recv(instruction: HloInstruction) -> AnyShape:
    check_token(instruction, 0)
    shape = instruction.shape
    if not isinstance(shape, TupleShape) or not shape.elements:
        raise fail(instruction, "async.shape", f"recv makes data, a context and a token, not {brief(shape)}")
    return TupleShape((shape.elements[0], _U32, TOKEN))


def _sent(instruction: HloInstruction) -> AnyShape:
    _second(instruction)
    return TOKEN


def _received(instruction: HloInstruction) -> AnyShape:
    _second(instruction)
    return TupleShape((cast("TupleShape", instruction.operands[0].shape).elements[0], TOKEN))


def asynchronous(instruction: HloInstruction) -> AnyShape:
    """The rule of `-start`, `-update` and `-done` of ops that have no rule of their own in these forms."""
    opcode = instruction.opcode
    if opcode.endswith("-update"):
        return instruction.operands[0].shape
    if opcode.endswith("-done"):
        return _second(instruction)
    operands, made = _start_parts(instruction)
    given = TupleShape(tuple(_operand_shapes(instruction)))
    if not compatible(operands, given):
        raise fail(instruction, "async.shape", f"{opcode} of {brief(given)} carries {brief(operands)}")
    called = instruction.attributes.get("calls")
    if isinstance(called, HloComputation) and not compatible(called.root.shape, made):
        raise fail(
            instruction,
            "function.result",
            f"'{called.name}' returns {brief(called.root.shape)}, {opcode} makes {brief(made)}",
        )
    return instruction.shape


DEVICES: dict[str, Rule] = {
    "partition-id": _id,
    "replica-id": _id,
    "infeed": _infeed,
    "outfeed": _outfeed,
    "send": _send,
    "send-done": _sent,
    "recv": _recv,
    "recv-done": _received,
    "copy-start": _copy_start,
    "copy-done": _copy_done,
    "all-reduce": _all_reduce,
    "all-reduce-start": _all_reduce,
    "all-reduce-done": _same,
    "all-gather": _all_gather,
    "all-gather-start": _all_gather_start,
    "all-gather-done": _second,
    "reduce-scatter": _reduce_scatter,
    "all-to-all": _all_to_all,
    "ragged-all-to-all": _ragged_all_to_all,
    "collective-broadcast": _collective_broadcast,
    "collective-permute": _collective_permute,
    "collective-permute-start": _collective_permute_start,
    "collective-permute-done": _second,
    "async-start": asynchronous,
    "async-update": asynchronous,
    "async-done": asynchronous,
}
"""The rule of each op that this module knows."""
