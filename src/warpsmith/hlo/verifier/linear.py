"""Rules of linear algebra and the like: dots, convolution, transforms, factorisations, batch norms, random numbers.

In: an instruction.  Out: the shape of its result.  `LINEAR` is the table.
"""

from __future__ import annotations

from typing import cast

from warpsmith.dtypes import BY_NAME, DType, Kind
from warpsmith.hlo.attributes import ConvDimNumbers, Window
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.shapes import UNBOUNDED, AnyShape, Shape, TupleShape
from warpsmith.hlo.verifier.common import (
    Rule,
    agree,
    array_operand,
    array_result,
    brief,
    check_rank,
    choice,
    compatible,
    dimensions,
    fail,
    of_dims,
    scalar_operand,
)
from warpsmith.hlo.verifier.reductions import window_places

__all__ = ["LINEAR"]

_PRECISIONS = ("default", "high", "highest", "packed_nibble")


def _product_type(instruction: HloInstruction, lhs: Shape, rhs: Shape) -> DType:
    """The result's element type, which the text chooses among those of one kind."""
    result = array_result(instruction).dtype
    kinds = {"integer" if each.dtype.is_integer else each.dtype.kind.value for each in (lhs, rhs)}
    made = "integer" if result.is_integer else result.kind.value
    # Integer weights times floats make floats, and XLA lets integers make floats, too.
    makes_float = made == "float" and kinds <= {"integer", "float"}
    if not makes_float and kinds != {made}:
        raise fail(instruction, "dot.types", f"{instruction.opcode} of {lhs.dtype} and {rhs.dtype} can't make {result}")
    precisions = cast("tuple[object, ...]", instruction.attributes.get("operand_precision", ()))
    for word in precisions:
        if word not in _PRECISIONS:
            raise fail(
                instruction,
                "attribute.word",
                f"operand_precision of {instruction.opcode} is '{word}'",
                help=f"one of {', '.join(_PRECISIONS)}",
            )
    return result


def _pairs(instruction: HloInstruction, lhs: Shape, rhs: Shape) -> tuple[list[int], list[int], list[int]]:
    """Sizes of the batch dimensions, and of those that each side keeps."""
    sides: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for side, shape in (("lhs", lhs), ("rhs", rhs)):
        batch = dimensions(instruction, shape.rank, f"{side}_batch_dims", default=())
        contracting = dimensions(instruction, shape.rank, f"{side}_contracting_dims", default=())
        both = set(batch) & set(contracting)
        if both:
            raise fail(
                instruction,
                "dimensions.distinct",
                f"{side}_batch_dims and {side}_contracting_dims both name dimension {min(both)}",
            )
        sides.append((batch, contracting))
    for name, part in (("batch", 0), ("contracting", 1)):
        left, right = sides[0][part], sides[1][part]
        if len(left) != len(right):
            raise fail(
                instruction, "dot.pairs", f"{instruction.opcode} has {len(left)} and {len(right)} {name} dimensions"
            )
        for a, b in zip(left, right, strict=True):
            if not agree((lhs.dims[a],), (rhs.dims[b],)):
                raise fail(
                    instruction,
                    "dot.pairs",
                    f"{name} dimensions {a} and {b} of {instruction.opcode} have sizes {lhs.dims[a]} and {rhs.dims[b]}",
                )
    kept = [
        [size for dim, size in enumerate(shape.dims) if dim not in side[0] and dim not in side[1]]
        for shape, side in zip((lhs, rhs), sides, strict=True)
    ]
    return [lhs.dims[dim] for dim in sides[0][0]], kept[0], kept[1]


def _dot(instruction: HloInstruction) -> AnyShape:
    lhs, rhs = array_operand(instruction, 0), array_operand(instruction, 1)
    if "sparsity" in instruction.attributes:
        return array_result(instruction)  # half of one side's elements aren't there; the text's sizes are taken
    if len(instruction.operands) != 2:
        raise fail(
            instruction, "opcode.operands", f"dot without sparsity takes 2 operands, not {len(instruction.operands)}"
        )
    dtype = _product_type(instruction, lhs, rhs)
    batch, left, right = _pairs(instruction, lhs, rhs)
    return of_dims(dtype, [*batch, *left, *right])


def _scaled_dot(instruction: HloInstruction) -> AnyShape:
    lhs, rhs = array_operand(instruction, 0), array_operand(instruction, 1)
    for index, shape in ((2, lhs), (3, rhs)):
        scale = array_operand(instruction, index)
        divides = all(b in (0, UNBOUNDED) or a % b == 0 for a, b in zip(shape.dims, scale.dims, strict=False))
        if scale.dims and (scale.rank != shape.rank or not divides):
            raise fail(instruction, "scaled-dot.scales", f"a scale of {brief(scale)} doesn't divide {brief(shape)}")
    dtype = _product_type(instruction, lhs, rhs)
    batch, left, right = _pairs(instruction, lhs, rhs)
    return of_dims(dtype, [*batch, *left, *right])


def _ragged_dot(instruction: HloInstruction) -> AnyShape:
    lhs, rhs, groups = (array_operand(instruction, index) for index in range(3))
    if not groups.dtype.is_integer or not groups.dims:
        raise fail(instruction, "operand.type", f"the group sizes are {brief(groups)}, not integers")
    ragged = dimensions(instruction, lhs.rank, "lhs_ragged_dims")
    grouped = dimensions(instruction, rhs.rank, "rhs_group_dims", default=())
    if len(ragged) != 1 or len(grouped) > 1:
        raise fail(
            instruction, "ragged.dimension", f"{len(ragged)} ragged and {len(grouped)} group dimensions are named"
        )
    contracting, batching = instruction.ints("lhs_contracting_dims", ()), instruction.ints("lhs_batch_dims", ())
    free = ragged[0] not in contracting and ragged[0] not in batching
    if free != bool(grouped):
        raise fail(
            instruction,
            "ragged.dimension",
            f"dimension {ragged[0]} is ragged and {'free' if free else 'batch or contracting'}, "
            f"rhs_group_dims names {len(grouped)} dimensions",
        )
    dtype = _product_type(instruction, lhs, rhs)
    batch, left, right = _pairs(instruction, lhs, rhs)
    if free:
        used = (*instruction.ints("rhs_batch_dims", ()), *instruction.ints("rhs_contracting_dims", ()))
        right = [size for dim, size in enumerate(rhs.dims) if dim not in used and dim not in grouped]
    leading = [groups.dims[-1]] if ragged[0] in contracting else []
    return of_dims(dtype, [*leading, *batch, *left, *right])


def _labelled(instruction: HloInstruction, labels: str, letters: str, rank: int, space: int) -> dict[str, int]:
    """Which dimension each label names: two letters and the space dimensions 0, 1, ..."""
    wanted = [*letters, *map(str, range(space))]
    if len(labels) != rank or sorted(labels) != sorted(wanted):
        raise fail(
            instruction,
            "convolution.labels",
            f"'{labels}' of dim_labels doesn't label an array of rank {rank} by {', '.join(wanted)}",
        )
    return {label: dim for dim, label in enumerate(labels)}


def _convolution(instruction: HloInstruction) -> AnyShape:
    lhs, rhs = array_operand(instruction, 0), array_operand(instruction, 1)
    numbers = instruction.attr("dim_labels", ConvDimNumbers)
    dtype = _product_type(instruction, lhs, rhs)
    space = max(len(numbers.lhs) - 2, 0)
    if rhs.rank != lhs.rank:
        raise fail(instruction, "operand.rank", f"convolution of {brief(lhs)} by {brief(rhs)}: the ranks differ")
    inputs = _labelled(instruction, numbers.lhs, "bf", lhs.rank, space)
    kernel = _labelled(instruction, numbers.rhs, "io", rhs.rank, space)
    outputs = _labelled(instruction, numbers.output, "bf", lhs.rank, space)
    window = instruction.attr("window", Window) if "window" in instruction.attributes else Window(())
    places = window_places(instruction, [lhs.dims[inputs[str(i)]] for i in range(space)], window)
    sizes = [rhs.dims[kernel[str(i)]] for i in range(space)]
    if not agree(sizes, [each.size for each in window.dims]):
        raise fail(
            instruction,
            "window.rank",
            f"the window has size {'x'.join(str(each.size) for each in window.dims)}, the kernel is {brief(rhs)}",
            help="the window's sizes are those of the kernel's space dimensions",
        )
    batch, features = lhs.dims[inputs["b"]], lhs.dims[inputs["f"]]
    made = rhs.dims[kernel["o"]]
    batch = _split_groups(instruction, batch, features, rhs.dims[kernel["i"]], made)
    dims = {"b": batch, "f": made, **{str(i): size for i, size in enumerate(places)}}
    return of_dims(dtype, [dims[label] for label in sorted(outputs, key=outputs.__getitem__)])


def _split_groups(instruction: HloInstruction, batch: int, features: int, kernel_in: int, kernel_out: int) -> int:
    """The result's batch size; features and batch are split into groups that come out even."""
    by_feature = cast("int", instruction.attributes.get("feature_group_count", 1))
    by_batch = cast("int", instruction.attributes.get("batch_group_count", 1))
    if min(by_feature, by_batch) < 1 or (by_feature > 1 and by_batch > 1):
        raise fail(
            instruction,
            "convolution.groups",
            f"feature_group_count is {by_feature} and batch_group_count {by_batch}",
        )
    if UNBOUNDED in (batch, features, kernel_in, kernel_out):
        return UNBOUNDED
    if features != kernel_in * by_feature:
        raise fail(
            instruction,
            "convolution.features",
            f"the input has {features} features, the kernel takes {kernel_in} in each of {by_feature} groups",
        )
    if kernel_out % by_feature or kernel_out % by_batch or batch % by_batch:
        raise fail(
            instruction,
            "convolution.groups",
            f"{by_feature} feature groups and {by_batch} batch groups don't divide {kernel_out} output features "
            f"and a batch of {batch}",
        )
    return batch // by_batch


_FFT_TYPES = ("FFT", "IFFT", "RFFT", "IRFFT")


def _fft(instruction: HloInstruction) -> AnyShape:
    kind = choice(instruction, "fft_type", _FFT_TYPES)
    lengths = instruction.ints("fft_length")
    if not 1 <= len(lengths) <= 3:
        raise fail(instruction, "fft.length", f"fft_length has {len(lengths)} sizes")
    operand = check_rank(instruction, 0, len(lengths))
    takes = ("f32", "f64") if kind == "RFFT" else ("c64", "c128")
    if operand.dtype.name not in takes:
        raise fail(instruction, "fft.type", f"{kind} takes {' or '.join(takes)}, not {operand.dtype}")
    half = lengths[-1] // 2 + 1 if lengths[-1] else 0
    halved = (*lengths[:-1], half)
    expected = halved if kind == "IRFFT" else lengths
    if not agree(operand.dims[-len(lengths) :], expected):
        raise fail(
            instruction,
            "fft.length",
            f"{kind} of length {{{','.join(map(str, lengths))}}} needs last dimensions "
            f"[{','.join(map(str, expected))}], the operand is {brief(operand)}",
        )
    if kind in ("FFT", "IFFT"):
        return operand
    made = {"f32": "c64", "f64": "c128", "c64": "f32", "c128": "f64"}[operand.dtype.name]
    return of_dims(BY_NAME[made], (*operand.dims[: -len(lengths)], *(halved if kind == "RFFT" else lengths)))


def _square(instruction: HloInstruction) -> Shape:
    """Operand 0: floats or complex numbers whose last two dimensions are equal."""
    operand = check_rank(instruction, 0, 2)
    if not (operand.dtype.is_float or operand.dtype.is_complex):
        raise fail(instruction, "operand.type", f"{instruction.opcode} takes floats, not {operand.dtype}")
    if not agree(operand.dims[-1:], operand.dims[-2:-1]):
        raise fail(instruction, "matrix.square", f"{instruction.opcode} of {brief(operand)}")
    return operand


def _triangular_solve(instruction: HloInstruction) -> AnyShape:
    a, b = _square(instruction), check_rank(instruction, 1, 2)
    if a.dtype is not b.dtype:
        raise fail(instruction, "operand.same-type", f"triangular-solve of {a.dtype} and {b.dtype}")
    if a.rank != b.rank or not agree(a.dims[:-2], b.dims[:-2]):
        raise fail(instruction, "matrix.batch", f"triangular-solve of {brief(a)} and {brief(b)}")
    choice(instruction, "transpose_a", ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"), "NO_TRANSPOSE")
    side = -2 if instruction.attributes.get("left_side", False) else -1
    if not agree((a.dims[-1],), (b.dims[side],)):
        raise fail(
            instruction,
            "operand.sizes",
            f"triangular-solve of {brief(a)} and {brief(b)} with left_side={'true' if side == -2 else 'false'}",
            help=f"the matrix has as many rows as the other operand has {'rows' if side == -2 else 'columns'}",
        )
    return b


def _batch_norm(instruction: HloInstruction) -> AnyShape:
    operand = array_operand(instruction, 0)
    feature = instruction.attr("feature_index", int)
    if not 0 <= feature < operand.rank:
        raise fail(instruction, "dimensions.range", f"feature_index is {feature}, the operand is {brief(operand)}")
    if not operand.dtype.is_float:
        raise fail(instruction, "operand.type", f"{instruction.opcode} takes floats, not {operand.dtype}")
    statistic = of_dims(operand.dtype, operand.dims[feature : feature + 1])
    grad = instruction.opcode == "batch-norm-grad"
    vectors = instruction.operands[1:4] if grad else instruction.operands[1:]
    for each in vectors:
        if not compatible(each.shape, statistic):
            raise fail(
                instruction, "batch-norm.features", f"operand '{each.name}' is {brief(each.shape)}, not {statistic}"
            )
    if grad and not compatible(instruction.operands[4].shape, operand):
        raise fail(
            instruction,
            "operand.sizes",
            f"the gradient is {brief(instruction.operands[4].shape)}, not {brief(operand)}",
        )
    return operand if instruction.opcode == "batch-norm-inference" else TupleShape((operand, statistic, statistic))


def _rng(instruction: HloInstruction) -> AnyShape:
    result = array_result(instruction)
    normal = choice(instruction, "distribution", ("rng_uniform", "rng_normal")) == "rng_normal"
    for index in range(len(instruction.operands)):
        if scalar_operand(instruction, index).dtype is not result.dtype:
            raise fail(
                instruction,
                "rng.parameters",
                f"parameter '{instruction.operands[index].name}' is {instruction.operands[index].shape}, "
                f"the numbers are {result.dtype}",
            )
    if result.dtype.kind is Kind.COMPLEX or (normal and not result.dtype.is_float):
        raise fail(instruction, "operand.type", f"rng can't make {result.dtype}")
    if len(instruction.operands) != 2:
        raise fail(instruction, "rng.parameters", f"{len(instruction.operands)} parameters are given")
    return result


def _rng_bit_generator(instruction: HloInstruction) -> AnyShape:
    choice(instruction, "algorithm", ("rng_default", "rng_three_fry", "rng_philox"))
    state = array_operand(instruction, 0)
    shape = instruction.shape
    if not isinstance(shape, TupleShape):
        return array_result(instruction)
    if len(shape.elements) != 2 or not compatible(shape.elements[0], state):
        raise fail(instruction, "rng.state", f"a state of {brief(state)} goes in, {brief(shape)} comes out")
    return shape


def _rng_get_and_update_state(instruction: HloInstruction) -> AnyShape:
    return of_dims(BY_NAME["u64"], (2,))


LINEAR: dict[str, Rule] = {
    "dot": _dot,
    "scaled-dot": _scaled_dot,
    "ragged-dot": _ragged_dot,
    "convolution": _convolution,
    "fft": _fft,
    "cholesky": _square,
    "triangular-solve": _triangular_solve,
    "batch-norm-training": _batch_norm,
    "batch-norm-inference": _batch_norm,
    "batch-norm-grad": _batch_norm,
    "rng": _rng,
    "rng-bit-generator": _rng_bit_generator,
    "rng-get-and-update-state": _rng_get_and_update_state,
}
"""The rule of each op that this module knows."""
