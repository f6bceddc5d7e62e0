"""The opcodes of HLO: operand counts, own attributes, and what kind of op each is.

In: nothing.  Out: `OPCODES`, one row an opcode, in XLA 0.10's spelling, and `lookup`, which also knows the wrapped
forms `slice-start`, `slice-update`, `slice-done` of asynchronous ops.  The parser checks operand counts and attribute
names against the rows; attributes that any opcode may carry are in `COMMON_ATTRIBUTES`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from warpsmith.numerics.functions.table import BY_OPCODE

__all__ = ["COMMON_ATTRIBUTES", "ELEMENTWISE_BINARY", "ELEMENTWISE_UNARY", "OPCODES", "Opcode", "lookup"]


@dataclass(frozen=True, slots=True)
class Opcode:
    """One row: `least`..`most` operands (`most` None: no bound); `required` and `optional` attribute names.

    `elementwise`: each result element depends on the operands' elements at its own index alone (a scalar operand of
    clamp or select serves every index).  `parity`: the operand count must be even (0) or odd (1).
    """

    name: str
    least: int
    most: int | None
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    elementwise: bool = False
    parity: int | None = None

    def takes(self, count: int) -> bool:
        """Whether `count` operands fit."""
        if count < self.least or (self.most is not None and count > self.most):
            return False
        return self.parity is None or count % 2 == self.parity

    @property
    def operand_words(self) -> str:
        """`2 operands`, `1 to 3 operands`, `an odd number of operands, at least 3`."""
        if self.parity is not None:
            return f"an {'odd' if self.parity else 'even'} number of operands, at least {self.least}"
        if self.most is None:
            return f"at least {self.least} operand{'' if self.least == 1 else 's'}"
        if self.least != self.most:
            return f"{self.least} to {self.most} operands"
        return f"{self.least} operand{'' if self.least == 1 else 's'}" if self.least else "no operands"

    @property
    def attribute_names(self) -> tuple[str, ...]:
        """The attributes that it must, may, or like any op may have."""
        return (*self.required, *self.optional, *sorted(COMMON_ATTRIBUTES))


COMMON_ATTRIBUTES: frozenset[str] = frozenset(
    {
        "sharding",
        "frontend_attributes",
        "control-predecessors",
        "metadata",
        "backend_config",
        "statistics",
        "origin",
        "original_value",
        "parameter_replication",
        "result_accuracy",
    }
)


def _with_functions(opcodes: str, arity: int) -> tuple[str, ...]:
    """These opcodes and the elementary functions of so many arguments, in order."""
    return tuple(sorted([*opcodes.split(), *(row.opcode for row in BY_OPCODE.values() if row.arity == arity)]))


ELEMENTWISE_UNARY = _with_functions(
    "abs ceil convert copy count-leading-zeros floor imag is-finite negate not popcnt real reduce-precision "
    "round-nearest-afz round-nearest-even sign",
    arity=1,
)
ELEMENTWISE_BINARY = _with_functions(
    "add and compare complex divide maximum minimum mulhi multiply or remainder shift-left shift-right-arithmetic "
    "shift-right-logical stochastic-convert subtract xor",
    arity=2,
)

_REQUIRED_ELEMENTWISE = {"compare": ("direction",), "reduce-precision": ("exponent_bits", "mantissa_bits")}
_OPTIONAL_ELEMENTWISE = {"compare": ("type",)}

_DOT = (
    *("lhs_batch_dims", "rhs_batch_dims", "lhs_contracting_dims", "rhs_contracting_dims"),
    *("operand_precision", "algorithm", "sparsity"),
)
_GATHER = ("offset_dims", "collapsed_slice_dims", "start_index_map", "index_vector_dim", "slice_sizes")
_SCATTER = (
    "update_window_dims",
    "inserted_window_dims",
    "scatter_dims_to_operand_dims",
    "index_vector_dim",
    "to_apply",
)
_GROUPS = ("channel_id", "replica_groups", "use_global_device_ids", "constrain_layout", "mode", "dimensions")
_CUSTOM_CALL = (
    *("window", "dim_labels", "feature_group_count", "batch_group_count", "operand_layout_constraints"),
    *("custom_call_has_side_effect", "to_apply", "called_computations", "calls", "output_to_operand_aliasing"),
    *("padding_type", "literal", "operand_precision", "schedule", "api_version"),
)
_CONVOLUTION = (
    *("window", "feature_group_count", "batch_group_count", "conv_kind", "convolution_kind", "operand_precision"),
    "sparsity_config",
)
_CHANNEL = ("channel_id", "is_host_transfer")
_ASYNC = ("async_execution_thread", "calls", "output_to_operand_aliasing")


def _elementwise(name: str, operands: int) -> Opcode:
    required = _REQUIRED_ELEMENTWISE.get(name, ())
    return Opcode(name, operands, operands, required, _OPTIONAL_ELEMENTWISE.get(name, ()), elementwise=True)


_ROWS: tuple[Opcode, ...] = (
    *(_elementwise(name, 1) for name in ELEMENTWISE_UNARY),
    *(_elementwise(name, 2) for name in ELEMENTWISE_BINARY),
    _elementwise("clamp", 3),
    _elementwise("select", 3),
    Opcode("map", 1, None, ("to_apply",), ("dimensions",), elementwise=True),
    Opcode("parameter", 0, 0),
    Opcode("constant", 0, 0),
    Opcode("iota", 0, 0, ("iota_dimension",)),
    Opcode("broadcast", 1, 1, (), ("dimensions",)),
    Opcode("reshape", 1, 1, (), ("inferred_dimension",)),
    Opcode("dynamic-reshape", 1, None),
    Opcode("transpose", 1, 1, ("dimensions",)),
    Opcode("reverse", 1, 1, ("dimensions",)),
    Opcode("slice", 1, 1, ("slice",)),
    Opcode("pad", 2, 2, ("padding",)),
    Opcode("concatenate", 1, None, ("dimensions",)),
    Opcode("bitcast", 1, 1),
    Opcode("bitcast-convert", 1, 1),
    Opcode("reduce", 2, None, ("dimensions", "to_apply"), parity=0),
    Opcode("reduce-window", 2, None, ("to_apply",), ("window",), parity=0),
    Opcode("select-and-scatter", 3, 3, ("select", "scatter"), ("window",)),
    Opcode("scan", 1, None, ("dimensions", "to_apply", "num_carries"), ("is_reverse", "is_associative")),
    Opcode("sort", 1, None, ("dimensions", "to_apply"), ("is_stable",)),
    Opcode("topk", 1, 1, ("k",), ("largest",)),
    Opcode(*("gather", 2, 2, _GATHER), ("operand_batching_dims", "start_indices_batching_dims", "indices_are_sorted")),
    Opcode(
        *("scatter", 3, None, _SCATTER),
        ("input_batching_dims", "scatter_indices_batching_dims", "indices_are_sorted", "unique_indices"),
        parity=1,
    ),
    Opcode("dynamic-slice", 1, None, ("dynamic_slice_sizes",)),
    Opcode("dynamic-update-slice", 2, None),
    Opcode("dot", 2, None, (), _DOT),
    Opcode("ragged-dot", 3, 3, (), (*_DOT, "lhs_ragged_dims", "rhs_group_dims")),
    Opcode("scaled-dot", 4, 4, (), _DOT),
    Opcode("convolution", 2, 2, ("dim_labels",), _CONVOLUTION),
    Opcode("fft", 1, 1, ("fft_type", "fft_length")),
    Opcode("cholesky", 1, 1, (), ("lower",)),
    Opcode("triangular-solve", 2, 2, (), ("left_side", "lower", "unit_diagonal", "transpose_a")),
    Opcode("batch-norm-training", 3, 3, ("epsilon", "feature_index")),
    Opcode("batch-norm-inference", 5, 5, ("epsilon", "feature_index")),
    Opcode("batch-norm-grad", 5, 5, ("epsilon", "feature_index")),
    Opcode("rng", 0, None, ("distribution",)),
    Opcode("rng-bit-generator", 1, None, ("algorithm",)),
    Opcode("rng-get-and-update-state", 0, 0, ("delta",)),
    Opcode("get-dimension-size", 1, 1, ("dimensions",)),
    Opcode("set-dimension-size", 2, 2, ("dimensions",)),
    Opcode("tuple", 0, None),
    Opcode("get-tuple-element", 1, 1, ("index",)),
    Opcode("fusion", 0, None, ("kind", "calls"), ("output_to_operand_aliasing",)),
    Opcode("call", 0, None, ("to_apply",), ("is_composite", "output_to_operand_aliasing")),
    Opcode("while", 1, 1, ("condition", "body")),
    Opcode("conditional", 2, None, (), ("true_computation", "false_computation", "branch_computations")),
    Opcode("custom-call", 0, None, ("custom_call_target",), _CUSTOM_CALL),
    Opcode("domain", 1, 1, ("domain",)),
    Opcode("opt-barrier", 1, 1),
    Opcode("after-all", 0, None),
    Opcode("add-dependency", 2, 2),
    Opcode("partition-id", 0, 0),
    Opcode("replica-id", 0, 0),
    Opcode("infeed", 1, 1, (), ("infeed_config",)),
    Opcode("outfeed", 2, 2, (), ("outfeed_config", "outfeed_shape")),
    Opcode("send", 2, 2, (), _CHANNEL),
    Opcode("send-done", 1, 1, (), _CHANNEL),
    Opcode("recv", 1, 1, (), _CHANNEL),
    Opcode("recv-done", 1, 1, (), _CHANNEL),
    Opcode("copy-start", 1, 1, (), ("cross_program_prefetch_index", "is_cross_program_prefetch")),
    Opcode("copy-done", 1, 1),
    Opcode("all-gather", 0, None, ("dimensions",), _GROUPS),
    Opcode("all-gather-start", 0, None, ("dimensions",), _GROUPS),
    Opcode("all-gather-done", 1, 1),
    Opcode("all-reduce", 0, None, ("to_apply",), _GROUPS),
    Opcode("all-reduce-start", 0, None, ("to_apply",), _GROUPS),
    Opcode("all-reduce-done", 1, 1),
    Opcode("reduce-scatter", 0, None, ("dimensions", "to_apply"), _GROUPS),
    Opcode("all-to-all", 0, None, (), _GROUPS),
    Opcode("ragged-all-to-all", 0, None, (), _GROUPS),
    Opcode("collective-broadcast", 0, None, (), _GROUPS),
    Opcode("collective-permute", 0, None, ("source_target_pairs",), ("channel_id", "slice_sizes")),
    Opcode("collective-permute-start", 0, None, ("source_target_pairs",), ("channel_id", "slice_sizes")),
    Opcode("collective-permute-done", 1, 1),
    Opcode("async-start", 0, None, ("calls",), _ASYNC),
    Opcode("async-update", 1, 1, (), _ASYNC),
    Opcode("async-done", 1, 1, (), _ASYNC),
)

OPCODES: dict[str, Opcode] = {row.name: row for row in _ROWS}

_WRAPPED_SUFFIXES = ("-start", "-update", "-done")


@lru_cache(maxsize=1024)
def lookup(name: str) -> Opcode | None:
    """The row of `name`, or of the op that `name` starts, updates or ends asynchronously; None when there is none."""
    row = OPCODES.get(name)
    if row is not None:
        return row
    for suffix in _WRAPPED_SUFFIXES:
        inner = OPCODES.get(name.removesuffix(suffix)) if name.endswith(suffix) else None
        if inner is None:
            continue
        if suffix == "-start":  # XLA prints one operand where the wrapped op takes one value twice
            return Opcode(name, min(inner.least, 1), inner.most, inner.required, (*inner.optional, *_ASYNC))
        return Opcode(name, 1, 1, (), (*inner.required, *inner.optional, *_ASYNC))
    return None
