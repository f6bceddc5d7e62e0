"""The attributes of serialised instructions, as the typed values that HLO text gives.

In: an `Instruction` message and what its ids refer to.  Out: name -> value.  `_READERS` has a row an attribute: which
part of the message it is, and None where XLA's text wouldn't show it; an opcode's own list says which are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

from warpsmith.errors import BadProto
from warpsmith.hlo.attributes import (
    Alias,
    ConvDimNumbers,
    FrontendAttributes,
    IotaGroups,
    MeshGroups,
    OpMetadata,
    PaddingConfig,
    PaddingDim,
    RawText,
    SliceDim,
    Window,
    WindowDim,
)
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.opcodes import lookup
from warpsmith.hlo.proto.values import literal, shape
from warpsmith.hlo.proto.wire import Message

__all__ = ["attributes_of", "frontend_attributes"]

Value = object | None
Read = Callable[[Message], Value]


def attributes_of(
    message: Message, called: Sequence[HloComputation], before: Sequence[HloInstruction]
) -> dict[str, object]:
    """The attributes of one instruction, in the order of XLA's text.  `called` and `before` are what its ids name."""
    found: dict[str, object] = {}
    opcode = message["opcode"]
    row = lookup(opcode)
    for name in row.attribute_names if row is not None else ():
        read = _READERS.get(name)
        value = read(message) if read is not None else None
        if value is not None:
            found[name] = value
    found.update(_calls(opcode, message, called))
    if before:
        found["control-predecessors"] = tuple(before)
    return found


# --------------------------------------------------------------------------------------------------------- called
_TO_APPLY = frozenset(
    {
        *("reduce", "reduce-window", "map", "sort", "scatter", "call", "all-reduce", "all-reduce-start"),
        *("reduce-scatter", "scan"),
    }
)


def _calls(opcode: str, message: Message, called: Sequence[HloComputation]) -> Mapping[str, object]:
    """The computations that an instruction calls, by the names of their parts."""
    if not called:
        return {}
    if opcode in _TO_APPLY:
        return {"to_apply": called[0]}
    if opcode == "while":
        return {"condition": called[1], "body": called[0]}
    if opcode == "select-and-scatter":
        return {"select": called[0], "scatter": called[1]}
    if opcode == "conditional":
        if len(called) == 2 and message["pred_index"]:
            return {"true_computation": called[0], "false_computation": called[1]}
        return {"branch_computations": tuple(called)}
    if opcode == "custom-call":
        return {"called_computations": tuple(called)}
    return {"calls": called[0]}


# --------------------------------------------------------------------------------------------------------- readers
def _ints(field: str) -> Read:
    return lambda m: tuple(m[field]) if field in m or m["opcode"] in _WITH_DIMENSIONS else None


_WITH_DIMENSIONS = frozenset(
    {
        *("broadcast", "transpose", "reverse", "concatenate", "reduce", "map", "sort", "all-gather"),
        *("all-gather-start", "reduce-scatter", "get-dimension-size", "set-dimension-size", "scan"),
    }
)


def _flag(field: str) -> Read:
    return lambda m: True if m[field] else None


def _always(field: str) -> Read:
    return lambda m: m[field]


def _text(field: str) -> Read:
    def read(message: Message) -> Value:
        value = message[field]
        text = value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
        return text or None

    return read


def _inner(message: str, field: str, *, always: bool = False) -> Read:
    """A list of integers of a message inside."""
    return lambda m: tuple(m[message][field]) if message in m and (always or m[message][field]) else None


def _dot(field: str) -> Read:
    def read(message: Message) -> Value:
        dims = message["dot_dimension_numbers"]
        if "ragged_dot_dimension_numbers" in message:
            dims = message["ragged_dot_dimension_numbers"]["dot_dimension_numbers"]
        return tuple(dims[field]) if dims[field] or "contracting" in field else None

    return read


def _window(message: Message) -> Value:
    if "window" not in message:
        return None
    dims = [
        WindowDim(
            each["size"],
            each["stride"],
            each["padding_low"],
            each["padding_high"],
            each["base_dilation"],
            each["window_dilation"],
            each["window_reversal"],
        )
        for each in message["window"]["dimensions"]
    ]
    return Window(tuple(dims)) if dims else None


_LAST_DIMENSION = 63


def _dim_labels(message: Message) -> Value:
    numbers = message.get("convolution_dimension_numbers")
    if numbers is None:
        return None
    sides: list[str] = []
    for first, second, space, words in (
        ("input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions", "bf"),
        ("kernel_input_feature_dimension", "kernel_output_feature_dimension", "kernel_spatial_dimensions", "io"),
        ("output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions", "bf"),
    ):
        at = {numbers[first]: words[0], numbers[second]: words[1]}
        at.update((dim, str(i)) for i, dim in enumerate(numbers[space]))
        if len(at) != 2 + len(numbers[space]) or min(at) < 0 or max(at) > _LAST_DIMENSION:
            raise BadProto(f"{space}: a convolution's dimensions have numbers {', '.join(map(str, sorted(at)))}")
        sides.append("".join(at.get(dim, "?") for dim in range(max(at) + 1)))
    return ConvDimNumbers(*sides)


def _groups(message: Message) -> Value:
    listed = message["collective_device_list"]
    if "mesh_replica_groups" in message:
        return _mesh(message["mesh_replica_groups"])
    iota = message.get("iota_replica_groups", listed["iota_replica_group_list"])
    if iota["iota_reshape_dims"]:
        transpose = tuple(iota["iota_transpose_perm"])
        plain = transpose == tuple(range(len(transpose)))
        dims = (iota["num_replica_groups"], iota["num_devices_per_group"])
        return IotaGroups(dims, tuple(iota["iota_reshape_dims"]), () if plain else transpose)
    rows = listed["replica_groups"] or message["replica_groups"]
    return tuple(tuple(row["replica_ids"]) for row in rows)


def _mesh(message: Message) -> MeshGroups:
    mesh = message["mesh"]
    names: list[str] = [each["name"] for each in mesh["axes"]]
    sizes: list[int] = [each["size"] for each in mesh["axes"]]
    along: list[tuple[str, int, int]] = [
        (names[each["mesh_axis_index"]], each["sub_axis_info"]["pre_size"], each["sub_axis_info"]["size"])
        for each in message["axes"]
    ]
    ids: list[int] = list(mesh["device_ids"])
    order = f", device_ids=({','.join(map(str, ids))})" if ids else ""
    if "iota_device_ids" in mesh:
        dims: list[int] = mesh["iota_device_ids"]["reshape_dims"]
        perm: list[int] = mesh["iota_device_ids"]["transpose_perm"]
        ids = [int(each) for each in np.arange(prod(dims)).reshape(dims).transpose(perm).reshape(-1)]
        order = f", device_ids=([{','.join(map(str, dims))}]T({','.join(map(str, perm))}))"
    axes = ",".join(f"'{name}'={size}" for name, size in zip(names, sizes, strict=True))
    parts = ",".join(f"'{name}'" + (f":({before}){size}" if size else "") for name, before, size in along)
    devices = tuple(ids or range(prod(sizes)))
    text = f"mesh[{axes}]{order} {{{parts}}}"
    return MeshGroups(tuple(zip(names, sizes, strict=True)), devices, tuple(along), text)


def _pairs(message: Message) -> Value:
    return tuple((each["source"], each["target"]) for each in message["source_target_pairs"])


def _precision(message: Message) -> Value:
    words = tuple(message["precision_config"]["operand_precision"])
    return words if any(word != "default" for word in words) else None


def _aliases(message: Message) -> Value:
    found = tuple(
        Alias(tuple(each["output_shape_index"]), each["operand_index"], tuple(each["operand_shape_index"]))
        for each in message["output_operand_aliasing"]
    )
    return found or None


def _fields(message: Message, names: Sequence[str]) -> tuple[tuple[str, object], ...]:
    return tuple((name, message[name]) for name in names if message[name])


_METADATA = (
    *("op_type", "op_name", "source_file", "source_line", "source_end_line", "source_column", "source_end_column"),
    *("size_of_generated_code_in_bytes", "size_of_memory_working_set_in_bytes", "deduplicated_name"),
    *("stack_frame_id", "scheduling_name"),
)


def _metadata(message: Message) -> Value:
    fields = _fields(message["metadata"], _METADATA)
    return OpMetadata(fields) if fields else None


def frontend_attributes(message: Message) -> FrontendAttributes | None:
    """What the frontend wanted kept, sorted by name as XLA prints it; None for nothing."""
    pairs = sorted((pair["key"], pair["value"]) for pair in message["frontend_attributes"]["map"])
    return FrontendAttributes(tuple(pairs)) if pairs else None


def _backend_config(message: Message) -> Value:
    text = message["backend_config"].decode("utf-8", "surrogateescape")
    if not text:
        return None
    return RawText(text) if text.startswith("{") and text.endswith("}") and message["opcode"] != "custom-call" else text


def _statistics(message: Message) -> Value:
    found = message.get("statistics_viz")
    if found is None or not found["statistics"]:
        return None
    rows = [f"{each['stat_name']}={each['stat_val']:g}" for each in found["statistics"]]
    return RawText(f"{{visualizing_index={found['stat_index_to_visualize']},{','.join(rows)}}}")


def _sharding(message: Message) -> Value:
    return RawText(_sharding_text(message["sharding"])) if "sharding" in message else None


def _sharding_text(message: Message) -> str:
    kind = message["type"]
    group = f" {message['shard_group_type']} {message['shard_group_id']}" if message["is_shard_group"] else ""
    if kind == "tuple":
        return "{" + ", ".join(_sharding_text(each) for each in message["tuple_shardings"]) + "}"
    if kind == "maximal":
        return f"{{maximal device={(message['tile_assignment_devices'] or [0])[0]}{group}}}"
    if kind != "other":
        return f"{{{kind}{group}}}"
    text = f"devices=[{','.join(map(str, message['tile_assignment_dimensions']))}]"
    if message["iota_reshape_dims"]:
        text += f"<=[{','.join(map(str, message['iota_reshape_dims']))}]"
        perm = message["iota_transpose_perm"]
        text += f"T({','.join(map(str, perm))})" if list(perm) != sorted(perm) else ""
    else:
        text += ",".join(map(str, message["tile_assignment_devices"]))
    if message["last_tile_dims"]:
        text += " last_tile_dims={" + ", ".join(message["last_tile_dims"]) + "}"
    elif message["replicate_on_last_tile_dim"]:
        text += " last_tile_dim_replicate"
    return f"{{{text}{group}}}"


def _replication(message: Message) -> Value:
    return tuple(message["parameter_replication"]["replicated_at_leaf_buffers"]) or None


def _transpose_a(message: Message) -> Value:
    return message["triangular_solve_options"]["transpose_a"]


def _lower(message: Message) -> Value:
    options = "cholesky_options" if message["opcode"] == "cholesky" else "triangular_solve_options"
    return True if message[options]["lower"] else None


def _solve_flag(field: str) -> Read:
    return lambda m: True if m["triangular_solve_options"][field] else None


def _gathered(field: str, required: bool = False) -> Read:
    def read(message: Message) -> Value:
        dims = message["gather_dimension_numbers" if message["opcode"] == "gather" else "scatter_dimension_numbers"]
        value = dims[field]
        if isinstance(value, int):
            return value
        return tuple(value) if value or required else None

    return read


_READERS: dict[str, Read] = {
    "iota_dimension": lambda m: (m["dimensions"] or [0])[0],
    "dimensions": _ints("dimensions"),
    "index": _always("tuple_index"),
    "kind": _always("fusion_kind"),
    "direction": _always("comparison_direction"),
    "type": lambda m: None,  # only where it isn't what the operands' type implies: see `reader`
    "exponent_bits": _always("exponent_bits"),
    "mantissa_bits": _always("mantissa_bits"),
    "window": _window,
    "dim_labels": _dim_labels,
    "feature_group_count": lambda m: m["feature_group_count"] if m["feature_group_count"] > 1 else None,
    "batch_group_count": lambda m: m["batch_group_count"] if m["batch_group_count"] > 1 else None,
    "slice": lambda m: tuple(SliceDim(s["start"], s["limit"], s["stride"]) for s in m["slice_dimensions"]),
    "padding": lambda m: PaddingConfig(
        tuple(
            PaddingDim(d["edge_padding_low"], d["edge_padding_high"], d["interior_padding"])
            for d in m["padding_config"]["dimensions"]
        )
    ),
    "dynamic_slice_sizes": lambda m: tuple(m["dynamic_slice_sizes"]),
    "slice_sizes": lambda m: tuple(m["gather_slice_sizes"]) if m["opcode"] == "gather" else None,
    "offset_dims": _gathered("offset_dims", required=True),
    "collapsed_slice_dims": _gathered("collapsed_slice_dims", required=True),
    "start_index_map": _gathered("start_index_map", required=True),
    "index_vector_dim": _gathered("index_vector_dim"),
    "operand_batching_dims": _gathered("operand_batching_dims"),
    "start_indices_batching_dims": _gathered("start_indices_batching_dims"),
    "update_window_dims": _gathered("update_window_dims", required=True),
    "inserted_window_dims": _gathered("inserted_window_dims", required=True),
    "scatter_dims_to_operand_dims": _gathered("scatter_dims_to_operand_dims", required=True),
    "input_batching_dims": _gathered("input_batching_dims"),
    "scatter_indices_batching_dims": _gathered("scatter_indices_batching_dims"),
    "indices_are_sorted": _flag("indices_are_sorted"),
    "unique_indices": _flag("unique_indices"),
    "is_stable": _flag("is_stable"),
    "k": _always("k"),
    "largest": _always("largest"),
    "lhs_batch_dims": _dot("lhs_batch_dimensions"),
    "rhs_batch_dims": _dot("rhs_batch_dimensions"),
    "lhs_contracting_dims": _dot("lhs_contracting_dimensions"),
    "rhs_contracting_dims": _dot("rhs_contracting_dimensions"),
    "lhs_ragged_dims": _inner("ragged_dot_dimension_numbers", "lhs_ragged_dimensions", always=True),
    "rhs_group_dims": _inner("ragged_dot_dimension_numbers", "rhs_group_dimensions"),
    "operand_precision": _precision,
    "algorithm": lambda m: (
        m["rng_algorithm"] if m["opcode"] == "rng-bit-generator" else m["precision_config"]["algorithm"] or None
    ),
    "fft_type": _always("fft_type"),
    "fft_length": lambda m: tuple(m["fft_length"]),
    "lower": _lower,
    "left_side": _solve_flag("left_side"),
    "unit_diagonal": _solve_flag("unit_diagonal"),
    "transpose_a": _transpose_a,
    "epsilon": _always("epsilon"),
    "feature_index": _always("feature_index"),
    "distribution": _always("distribution"),
    "delta": _always("delta"),
    "custom_call_target": _always("custom_call_target"),
    "custom_call_has_side_effect": _flag("custom_call_has_side_effect"),
    "operand_layout_constraints": lambda m: (
        tuple(shape(each) for each in m["operand_shapes_with_layout"]) if m["constrain_layout"] else None
    ),
    "output_to_operand_aliasing": _aliases,
    "padding_type": lambda m: m["padding_type"] or None,
    "literal": lambda m: literal(m["literal"]) if "literal" in m else None,
    "schedule": lambda m: m["custom_call_schedule"] or None,
    "api_version": lambda m: (
        m["custom_call_api_version"] if m["custom_call_api_version"] not in ("", "API_VERSION_ORIGINAL") else None
    ),
    "is_composite": _flag("is_composite"),
    "infeed_config": _text("infeed_config"),
    "outfeed_config": _text("outfeed_config"),
    "outfeed_shape": lambda m: shape(m["outfeed_shape"]) if "outfeed_shape" in m else None,
    "channel_id": lambda m: m["channel_id"] if m["channel_id"] > 0 else None,
    "is_host_transfer": _flag("is_host_transfer"),
    "cross_program_prefetch_index": lambda m: m.get("cross_program_prefetch_index"),
    "replica_groups": _groups,
    "use_global_device_ids": _flag("use_global_device_ids"),
    "constrain_layout": lambda m: True if m["constrain_layout"] and m["opcode"] != "custom-call" else None,
    "source_target_pairs": _pairs,
    "async_execution_thread": lambda m: (
        m["async_execution_thread"] if m["async_execution_thread"] not in ("", "main") else None
    ),
    "num_carries": _always("num_carries"),
    "is_reverse": _flag("is_reverse"),
    "is_associative": lambda m: {1: True, 2: False}.get(m["associativity"]),
    "convolution_kind": lambda m: m["convolution_kind"] or None,
    "sharding": _sharding,
    "frontend_attributes": frontend_attributes,
    "metadata": _metadata,
    "backend_config": _backend_config,
    "statistics": _statistics,
    "parameter_replication": _replication,
}
