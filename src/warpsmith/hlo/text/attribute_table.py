"""Attributes: one row a name, which says how its value is read and printed.

In: nothing.  Out: `ATTRIBUTES` (of instructions and computations) and `HEADER` (of modules), by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from warpsmith.errors import BadAttribute
from warpsmith.hlo.attributes import RawText, SliceDim, braced
from warpsmith.hlo.literals import Literal
from warpsmith.hlo.text import attribute_readers as readers
from warpsmith.hlo.text import attribute_structures as structures
from warpsmith.hlo.text.lexer import escape
from warpsmith.hlo.text.literals import literal_text

__all__ = ["ATTRIBUTES", "HEADER", "KINDS", "ValueKind"]

Print = Callable[[object, str], str]


@dataclass(frozen=True, slots=True)
class ValueKind:
    """How values of one kind are read and printed; the printer's second argument is `%` or nothing.

    `refers` says that values hold references: to "computation" or "instruction".
    """

    name: str
    read: readers.Read
    print: Print
    refers: str = ""


def _items(value: object) -> tuple[object, ...]:
    if not isinstance(value, tuple):
        raise BadAttribute(f"{value!r} isn't a list")
    return cast("tuple[object, ...]", value)


def _print_plain(value: object, percent: str) -> str:
    return str(value)


def _print_bool(value: object, percent: str) -> str:
    return "true" if value else "false"


def _print_float(value: object, percent: str) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if not isinstance(value, float) or float(text) == value else repr(value)


def _print_string(value: object, percent: str) -> str:
    return str(value) if isinstance(value, RawText) else f'"{escape(str(value))}"'


def _print_ints(value: object, percent: str) -> str:
    if not isinstance(value, tuple):
        return str(value)
    return braced([_print_ints(item, percent) for item in _items(cast("object", value))])


def _print_bools(value: object, percent: str) -> str:
    if not isinstance(value, tuple):
        return _print_bool(value, percent)
    return braced([_print_bool(item, percent) for item in _items(cast("object", value))])


def _print_words(value: object, percent: str) -> str:
    return braced(_items(value))


def _print_reference(value: object, percent: str) -> str:
    return percent + _name_of(value)


def _print_references(value: object, percent: str) -> str:
    return "{" + ", ".join(percent + _name_of(item) for item in _items(value)) + "}"


def _name_of(value: object) -> str:
    name = getattr(value, "name", None)
    if not isinstance(name, str):
        raise BadAttribute(f"{value!r} isn't a computation or an instruction")
    return name


def _print_slice(value: object, percent: str) -> str:
    dims = [item for item in _items(value) if isinstance(item, SliceDim)]
    strided = any(dim.stride != 1 for dim in dims)
    return (
        "{"
        + ", ".join(f"[{d.start}:{d.limit}:{d.stride}]" if strided else f"[{d.start}:{d.limit}]" for d in dims)
        + "}"
    )


def _print_spaced(value: object, percent: str) -> str:
    return "{" + ", ".join(map(str, _items(value))) + "}"


def _print_padded(value: object, percent: str) -> str:
    return "{ " + ", ".join(map(str, _items(value))) + " }"


def _print_literal(value: object, percent: str) -> str:
    if not isinstance(value, Literal):
        raise BadAttribute(f"{value!r} isn't a literal")
    if value.is_tuple:
        return f"({', '.join(_print_literal(item, percent) for item in value.elements)})"
    return f"{value.shape} {literal_text(value)}"


KINDS: dict[str, ValueKind] = {
    kind.name: kind
    for kind in (
        ValueKind("int", readers.read_int, _print_plain),
        ValueKind("float", readers.read_float, _print_float),
        ValueKind("bool", readers.read_bool, _print_bool),
        ValueKind("word", readers.read_word, _print_plain),
        ValueKind("direction", readers.word_of("EQ", "NE", "LT", "LE", "GT", "GE"), _print_plain),
        ValueKind("comparison", readers.word_of("FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"), _print_plain),
        ValueKind("fusion kind", readers.word_of("kLoop", "kInput", "kOutput", "kCustom"), _print_plain),
        ValueKind("string", readers.read_string, _print_string),
        ValueKind("string or json", readers.read_string_or_json, _print_string),
        ValueKind("ints", readers.read_ints, _print_ints),
        ValueKind("bools", readers.read_bools, _print_bools),
        ValueKind("precisions", readers.read_precisions, _print_words),
        ValueKind("computation", readers.read_reference, _print_reference, "computation"),
        ValueKind("computations", readers.read_references, _print_references, "computation"),
        ValueKind("instructions", readers.read_references, _print_references, "instruction"),
        ValueKind("slice", structures.read_slice, _print_slice),
        ValueKind("padding", structures.read_padding, _print_plain),
        ValueKind("window", structures.read_window, _print_plain),
        ValueKind("dim labels", structures.read_dim_labels, _print_plain),
        ValueKind("groups", structures.read_groups, _print_ints),
        ValueKind("aliases", structures.read_aliases, _print_spaced),
        ValueKind("module aliases", structures.read_aliases, _print_padded),
        ValueKind("donors", structures.read_donors, _print_padded),
        ValueKind("shape", readers.read_shape, _print_plain),
        ValueKind("shapes", readers.read_shapes, _print_spaced),
        ValueKind("entry layout", readers.read_entry_layout, _print_plain),
        ValueKind("literal", readers.read_literal, _print_literal),
        ValueKind("metadata", readers.read_metadata, _print_plain),
        ValueKind("frontend", readers.read_frontend, _print_plain),
        ValueKind("raw", readers.read_raw, _print_plain),
    )
}

_NAMES: dict[str, str] = {
    "int": "iota_dimension index index_vector_dim exponent_bits mantissa_bits channel_id feature_group_count "
    "batch_group_count feature_index k delta num_carries inferred_dimension cross_program_prefetch_index",
    "float": "epsilon",
    "bool": "is_stable indices_are_sorted unique_indices constrain_layout use_global_device_ids is_host_transfer "
    "custom_call_has_side_effect is_composite largest is_reverse is_associative lower left_side unit_diagonal "
    "is_cross_program_prefetch",
    "word": "algorithm distribution fft_type transpose_a schedule api_version padding_type mode conv_kind "
    "convolution_kind",
    "direction": "direction",
    "comparison": "type",
    "fusion kind": "kind",
    "string": "custom_call_target infeed_config outfeed_config async_execution_thread execution_thread",
    "string or json": "backend_config",
    "ints": "dimensions slice_sizes dynamic_slice_sizes offset_dims collapsed_slice_dims start_index_map "
    "operand_batching_dims start_indices_batching_dims update_window_dims inserted_window_dims "
    "scatter_dims_to_operand_dims input_batching_dims scatter_indices_batching_dims lhs_batch_dims rhs_batch_dims "
    "lhs_contracting_dims rhs_contracting_dims lhs_ragged_dims rhs_group_dims fft_length source_target_pairs",
    "bools": "parameter_replication",
    "precisions": "operand_precision",
    "computation": "to_apply calls condition body select scatter true_computation false_computation",
    "computations": "branch_computations called_computations",
    "instructions": "control-predecessors",
    "slice": "slice",
    "padding": "padding",
    "window": "window",
    "dim labels": "dim_labels",
    "groups": "replica_groups",
    "aliases": "output_to_operand_aliasing",
    "shape": "outfeed_shape",
    "shapes": "operand_layout_constraints",
    "literal": "literal",
    "metadata": "metadata",
    "frontend": "frontend_attributes",
    "raw": "sharding statistics origin result_accuracy domain sparsity sparsity_config original_value",
}

ATTRIBUTES: dict[str, ValueKind] = {name: KINDS[kind] for kind, names in _NAMES.items() for name in names.split()}
"""The kind of each attribute of an instruction or computation."""

HEADER: dict[str, ValueKind] = {
    "is_scheduled": KINDS["bool"],
    "input_output_alias": KINDS["module aliases"],
    "buffer_donor": KINDS["donors"],
    "alias_passthrough_params": KINDS["bool"],
    "entry_computation_layout": KINDS["entry layout"],
    "allow_spmd_sharding_propagation_to_parameters": KINDS["bools"],
    "allow_spmd_sharding_propagation_to_output": KINDS["bools"],
    "replica_count": KINDS["int"],
    "num_partitions": KINDS["int"],
    "frontend_attributes": KINDS["frontend"],
    "origin_recovery_table": KINDS["raw"],
    "dynamic_parameter_binding": KINDS["raw"],
    "use_auto_spmd_partitioning": KINDS["bool"],
}
"""The kind of each field of a module's header."""
