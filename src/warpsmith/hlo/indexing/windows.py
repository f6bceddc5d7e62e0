"""Output-to-input maps of padding and of ops that slide a window: pad, reduce-window, convolution.

In: instructions.  Out: for each operand, its maps.  A window's map is the map of a window that never leaves its array,
followed by the map of the padding around the array.  Unlike in XLA's `indexing_analysis.cc`, what a batch group of a
convolution reads is exact.
"""

from __future__ import annotations

from functools import lru_cache

from warpsmith.hlo.attributes import ConvDimNumbers, PaddingConfig, Window, WindowDim
from warpsmith.hlo.indexing.common import Maps, dims_of, int_of, to_scalar
from warpsmith.hlo.module import HloInstruction
from warpsmith.indexing import (
    Expr,
    IndexingMap,
    Interval,
    Variable,
    add,
    dim,
    floordiv,
    mod,
    mul,
    symbol,
)
from warpsmith.indexing.rewire import remove_unused_symbols


@lru_cache(maxsize=256)
def _pad_map(
    output: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...], interior: tuple[int, ...]
) -> IndexingMap:
    """Index in a padded array -> index in the array, where it isn't padding."""
    dims = [
        Variable("", Interval(max(0, before), min(size, size - after) - 1))
        for size, before, after in zip(output, low, high, strict=True)
    ]
    shifted = [add(dim(d), -before) for d, before in enumerate(low)]
    return IndexingMap.make(
        dims,
        [floordiv(expr, gap + 1) for expr, gap in zip(shifted, interior, strict=True)],
        constraints=[
            (mod(expr, gap + 1), Interval.point(0)) for expr, gap in zip(shifted, interior, strict=True) if gap
        ],
    )


def pad(instruction: HloInstruction) -> list[Maps]:
    """The operand where the index is no padding; the padding value is a scalar."""
    rows = instruction.attr("padding", PaddingConfig).dims
    sizes = dims_of(instruction)
    found = _pad_map(
        sizes, tuple(row.low for row in rows), tuple(row.high for row in rows), tuple(row.interior for row in rows)
    )
    return [[found], [to_scalar(sizes)]]


@lru_cache(maxsize=256)
def _window_map(output: tuple[int, ...], input_sizes: tuple[int, ...], window: tuple[WindowDim, ...]) -> IndexingMap:
    """(output index)[place in the window] -> input index, where that isn't padding or a gap of the base dilation."""
    places = [symbol(i) if not row.reversal else add(row.size - 1, -symbol(i)) for i, row in enumerate(window)]
    reached = [
        add(mul(place, row.window_dilation), mul(dim(d), row.stride))
        for d, (place, row) in enumerate(zip(places, window, strict=True))
    ]
    padded = tuple(
        row.pad_low + row.pad_high + (max(0, size - 1) * row.base_dilation + 1 if size else 0)
        for size, row in zip(input_sizes, window, strict=True)
    )
    pad = _pad_map(
        padded,
        tuple(row.pad_low for row in window),
        tuple(row.pad_high for row in window),
        tuple(row.base_dilation - 1 for row in window),
    )
    return IndexingMap.from_sizes(reached, output, [row.size for row in window]).then(pad)


def _window_of(instruction: HloInstruction, rank: int) -> tuple[WindowDim, ...]:
    rows = instruction.attributes.get("window", Window(()))
    assert isinstance(rows, Window)
    return rows.dims or (WindowDim(1),) * rank


def reduce_window(instruction: HloInstruction) -> list[Maps]:
    """Result index and a symbol for each window dimension, outside of padding and gaps."""
    output, inputs = dims_of(instruction), len(instruction.operands) // 2
    source = dims_of(instruction.operands[0])
    found = remove_unused_symbols(_window_map(output, source, _window_of(instruction, len(source))).simplify())
    return [[found]] * inputs + [[to_scalar(output)]] * inputs


def convolution(instruction: HloInstruction) -> list[Maps]:
    """Input: window symbols and a symbol over input features; kernel: the same symbols."""
    output, source, kernel = (dims_of(i) for i in (instruction, *instruction.operands))
    labels = instruction.attr("dim_labels", ConvDimNumbers)
    window = _window_of(instruction, len(output) - 2)
    feature_groups = int_of(instruction, "feature_group_count")
    batch_groups = int_of(instruction, "batch_group_count")
    space = [str(i) for i in range(len(window))]
    batch, feature = dim(labels.output.index("b")), dim(labels.output.index("f"))
    features = output[labels.output.index("f")]
    depth = kernel[labels.rhs.index("i")]
    inner = _window_map(
        tuple(output[labels.output.index(x)] for x in space),
        tuple(source[labels.lhs.index(x)] for x in space),
        window,
    )
    # The window's own dims 0, 1, ... become the dims of the output that hold space.
    moved: dict[Expr, Expr] = {dim(i): dim(labels.output.index(x)) for i, x in enumerate(space)}
    spatial = IndexingMap.from_sizes([moved[dim(i)] for i in range(len(space))], output).then(inner)
    extents = [*(row.size for row in window), depth]
    step = symbol(len(window))
    if feature_groups > 1:
        step = add(mul(floordiv(feature, features // feature_groups), depth), step)
    row: Expr = batch
    if batch_groups > 1:
        row = add(mul(floordiv(feature, features // batch_groups), output[labels.output.index("b")]), batch)
    by_label: dict[str, Expr] = dict(zip(space, spatial.results, strict=True))
    by_label.update({"b": row, "f": step})
    reads = IndexingMap.make(
        spatial.dim_vars,
        [by_label[x] for x in labels.lhs],
        range_vars=(*spatial.range_vars, Variable("", Interval.of_size(depth))),
        constraints=spatial.constraints.items(),
    )
    kernel_parts: dict[str, Expr] = {x: symbol(i) for i, x in enumerate(space)}
    kernel_parts.update({"o": feature, "i": symbol(len(window))})
    weights = IndexingMap.from_sizes([kernel_parts[x] for x in labels.rhs], output, extents)
    return [[reads.emptied() if spatial.known_empty else reads.simplify()], [weights]]
