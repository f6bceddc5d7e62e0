"""The messages of XLA's `xla/service/hlo.proto` and `xla/xla_data.proto` that a module is made of, as tables.

A row of `_TEXT` is `number:name:kind`, `kind*` for repeated fields; a kind without a colon is `int` (signed).  Numbers
never change in a published proto file, new ones are added; what isn't here is skipped by `wire`.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ELEMENT_TYPES", "ENUMS", "MESSAGES", "Field"]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message: its name, its kind (a scalar type, a message or an enum), whether it repeats."""

    name: str
    kind: str
    repeated: bool


_TEXT = {
    "HloSnapshot": "1:hlo:HloProto 2:arguments:Literal* 3:result:Literal 4:execution_platform:string",
    "HloProto": "1:hlo_module:Module",
    "Module": "1:name:string 2:entry_computation_name:string 3:computations:Computation* 4:host_program_shape:Program "
    "5:id 6:entry_computation_id 7:schedule:Schedule 8:input_output_alias:Aliases 17:stack_frame_index:Frames "
    "18:buffer_donor:Donors 19:frontend_attributes:Frontend",
    "Schedule": "1:sequences:bytes*",
    "Aliases": "1:entries:Alias*",
    "Alias": "1:output_shape_index:int* 2:parameter_number 3:parameter_shape_index:int* 4:kind:AliasKind",
    "Donors": "1:entries:Donor*",
    "Donor": "1:parameter_number 2:parameter_shape_index:int*",
    "Frames": "1:file_names:string* 2:function_names:string* 3:file_locations:FileLocation* 4:stack_frames:Frame*",
    "FileLocation": "1:file_name_id 2:function_name_id 3:line 4:column 5:end_line 6:end_column",
    "Frame": "1:file_location_id 2:parent_frame_id",
    "Frontend": "1:map:Pair*",
    "Pair": "1:key:string 2:value:string",
    "Program": "1:parameters:Shape* 2:result:Shape 3:parameter_names:string*",
    "Computation": "1:name:string 2:instructions:Instruction* 4:program_shape:Program 5:id 6:root_id "
    "8:execution_thread:string",
    "Shape": "2:element_type:ElementType 3:dimensions:int* 4:tuple_shapes:Shape* 5:layout:Layout "
    "6:is_dynamic_dimension:bool*",
    "Layout": "1:minor_to_major:int* 6:tiles:Tile* 7:element_size_in_bits 8:memory_space 9:dim_level_types:DimLevel* "
    "10:physical_shape:Shape 11:index_primitive_type:ElementType 12:pointer_primitive_type:ElementType "
    "13:dim_unique:bool* 14:dim_ordered:bool* 15:dynamic_shape_metadata_prefix_bytes "
    "16:tail_padding_alignment_in_elements 17:split_configs:Split*",
    "Tile": "1:dimensions:int*",
    "Split": "1:dimension 2:split_indices:int*",
    "Metadata": "1:op_type:string 2:op_name:string 3:source_file:string 4:source_line 17:source_end_line "
    "18:source_column 19:source_end_column 8:size_of_generated_code_in_bytes 9:size_of_memory_working_set_in_bytes "
    "12:deduplicated_name:string 15:stack_frame_id 16:scheduling_name:string",
    "Literal": "1:shape:Shape 2:pred:bool* 30:s1:bytes 26:s2:bytes 21:s4:bytes 15:s8:bytes 31:u1:bytes 27:u2:bytes "
    "22:u4:bytes 3:u8:bytes 4:s32:int* 5:s64:int* 6:u32:uint* 7:u64:uint* 8:f32:float* 9:f64:double* 12:c64:float* "
    "18:c128:double* 10:tuple_literals:Literal* 11:f16:bytes 13:bf16:bytes 16:u16:bytes 17:s16:bytes "
    "32:f4e2m1fn:bytes 29:f8e3m4:bytes 23:f8e4m3b11fnuz:bytes 20:f8e4m3fn:bytes 25:f8e4m3fnuz:bytes 28:f8e4m3:bytes "
    "24:f8e5m2fnuz:bytes 19:f8e5m2:bytes 33:f8e8m0fnu:bytes",
    "Window": "1:dimensions:WindowDimension*",
    "WindowDimension": "1:size 2:stride 3:padding_low 4:padding_high 5:window_dilation 6:base_dilation "
    "7:window_reversal:bool",
    "ConvolutionDims": "3:kernel_input_feature_dimension 4:kernel_output_feature_dimension "
    "6:kernel_spatial_dimensions:int* 7:input_batch_dimension 8:input_feature_dimension 9:output_batch_dimension "
    "10:output_feature_dimension 11:input_spatial_dimensions:int* 12:output_spatial_dimensions:int*",
    "SliceDimension": "1:start 2:limit 3:stride",
    "Padding": "1:dimensions:PaddingDimension*",
    "PaddingDimension": "1:edge_padding_low 2:edge_padding_high 3:interior_padding",
    "DotDims": "1:lhs_contracting_dimensions:int* 2:rhs_contracting_dimensions:int* 3:lhs_batch_dimensions:int* "
    "4:rhs_batch_dimensions:int*",
    "RaggedDotDims": "1:dot_dimension_numbers:DotDims 2:lhs_ragged_dimensions:int* 3:rhs_group_dimensions:int*",
    "GatherDims": "1:offset_dims:int* 2:collapsed_slice_dims:int* 3:start_index_map:int* 4:index_vector_dim "
    "5:operand_batching_dims:int* 6:start_indices_batching_dims:int*",
    "ScatterDims": "1:update_window_dims:int* 2:inserted_window_dims:int* 3:scatter_dims_to_operand_dims:int* "
    "4:index_vector_dim 5:input_batching_dims:int* 6:scatter_indices_batching_dims:int*",
    "ReplicaGroup": "1:replica_ids:int*",
    "DeviceList": "1:replica_groups:ReplicaGroup* 2:iota_replica_group_list:IotaList",
    "IotaList": "1:num_replica_groups 2:num_devices_per_group 3:iota_reshape_dims:int* 4:iota_transpose_perm:int*",
    "MeshList": "1:mesh:Mesh 2:axes:AxisRef*",
    "Mesh": "1:axes:MeshAxis* 2:device_ids:int* 3:iota_device_ids:IotaOrder",
    "IotaOrder": "1:reshape_dims:int* 2:transpose_perm:int*",
    "MeshAxis": "1:name:string 2:size",
    "AxisRef": "1:mesh_axis_index 2:sub_axis_info:SubAxis",
    "SubAxis": "1:pre_size 2:size",
    "SourceTarget": "1:source 2:target",
    "Precision": "1:operand_precision:PrecisionWord* 2:algorithm:Algorithm",
    "TriangularSolve": "1:left_side:bool 2:lower:bool 3:unit_diagonal:bool 4:transpose_a:Transpose",
    "Cholesky": "1:lower:bool",
    "Replication": "1:replicated_at_leaf_buffers:bool*",
    "OutputAlias": "1:output_shape_index:int* 2:operand_index 3:operand_shape_index:int*",
    "Statistics": "1:stat_index_to_visualize 2:statistics:Statistic*",
    "Statistic": "1:stat_name:string 2:stat_val:double",
    "Sharding": "1:type:ShardingType 3:tile_assignment_dimensions:int* 4:tile_assignment_devices:int* "
    "5:tuple_shardings:Sharding* 6:replicate_on_last_tile_dim:bool 7:metadata:Metadata* 8:last_tile_dims:ShardingType* "
    "9:iota_reshape_dims:int* 10:iota_transpose_perm:int* 11:is_shard_group:bool 12:shard_group_id "
    "13:shard_group_type:ShardGroupType",
    "Instruction": "1:name:string 2:opcode:string 3:shape:Shape 7:metadata:Metadata 8:literal:Literal "
    "9:parameter_number 11:fusion_kind:string 13:tuple_index 14:dimensions:int* 15:window:Window "
    "16:convolution_dimension_numbers:ConvolutionDims 17:slice_dimensions:SliceDimension* 18:exponent_bits "
    "19:mantissa_bits 20:dynamic_slice_sizes:int* 21:padding_config:Padding 22:outfeed_config:bytes "
    "23:distribution:Distribution 24:epsilon:float 25:feature_index 26:channel_id 27:infeed_config:bytes "
    "28:custom_call_target:string 29:outfeed_shape:Shape 30:dot_dimension_numbers:DotDims 31:fft_type:FftType "
    "32:fft_length:int* 33:gather_dimension_numbers:GatherDims 34:gather_slice_sizes:int* 35:id 36:operand_ids:int* "
    "37:control_predecessor_ids:int* 38:called_computation_ids:int* 40:sharding:Sharding 43:backend_config:bytes "
    "47:is_host_transfer:bool 48:scatter_dimension_numbers:ScatterDims 49:replica_groups:ReplicaGroup* "
    "50:feature_group_count 51:precision_config:Precision 52:source_target_pairs:SourceTarget* "
    "56:constrain_layout:bool 57:operand_shapes_with_layout:Shape* 58:batch_group_count "
    "59:triangular_solve_options:TriangularSolve 60:is_stable:bool 61:parameter_replication:Replication "
    "62:cholesky_options:Cholesky 63:comparison_direction:string 65:custom_call_has_side_effect:bool 66:delta "
    "67:indices_are_sorted:bool 68:frontend_attributes:Frontend 69:unique_indices:bool "
    "70:rng_algorithm:RandomAlgorithm 71:use_global_device_ids:bool 72:comparison_type:string "
    "74:output_operand_aliasing:OutputAlias* 75:padding_type:PaddingType 76:custom_call_schedule:CallSchedule "
    "77:custom_call_api_version:ApiVersion 79:async_execution_thread:string 80:cross_program_prefetch_index "
    "81:k 82:statistics_viz:Statistics 85:largest:bool 87:collective_device_list:DeviceList 89:is_composite:bool "
    "90:ragged_dot_dimension_numbers:RaggedDotDims 92:iota_replica_groups:IotaList 93:mesh_replica_groups:MeshList "
    "94:is_reverse:bool 95:num_carries 96:associativity 97:convolution_kind:ConvolutionKind",
}

ELEMENT_TYPES: dict[int, str] = {
    0: "",
    1: "pred",
    2: "s8",
    3: "s16",
    4: "s32",
    5: "s64",
    6: "u8",
    7: "u16",
    8: "u32",
    9: "u64",
    10: "f16",
    11: "f32",
    12: "f64",
    13: "tuple",
    14: "opaque",
    15: "c64",
    16: "bf16",
    17: "token",
    18: "c128",
    19: "f8e5m2",
    20: "f8e4m3fn",
    21: "s4",
    22: "u4",
    23: "f8e4m3b11fnuz",
    24: "f8e5m2fnuz",
    25: "f8e4m3fnuz",
    26: "s2",
    27: "u2",
    28: "f8e4m3",
    29: "f8e3m4",
    30: "s1",
    31: "u1",
    32: "f4e2m1fn",
    33: "f8e8m0fnu",
    34: "buffer",
}
"""Element types by their numbers, in HLO text's spelling."""

ENUMS: dict[str, dict[int, str]] = {
    "ElementType": ELEMENT_TYPES,
    "AliasKind": {1: "may-alias", 2: "must-alias"},
    "DimLevel": {0: "D", 1: "C", 2: "S", 3: "H"},
    "Distribution": {1: "rng_uniform", 2: "rng_normal"},
    "FftType": {0: "FFT", 1: "IFFT", 2: "RFFT", 3: "IRFFT"},
    "RandomAlgorithm": {0: "rng_default", 1: "rng_three_fry", 2: "rng_philox"},
    "Transpose": {0: "TRANSPOSE_INVALID", 1: "NO_TRANSPOSE", 2: "TRANSPOSE", 3: "ADJOINT"},
    "PaddingType": {1: "PADDING_VALID", 2: "PADDING_SAME"},
    "CallSchedule": {1: "SCHEDULE_LATEST", 2: "SCHEDULE_EARLIEST"},
    "ApiVersion": {
        1: "API_VERSION_ORIGINAL",
        2: "API_VERSION_STATUS_RETURNING",
        3: "API_VERSION_STATUS_RETURNING_UNIFIED",
        4: "API_VERSION_TYPED_FFI",
    },
    "PrecisionWord": {0: "default", 1: "high", 2: "highest", 3: "packed_nibble"},
    "Algorithm": dict(
        enumerate(
            (
                "",
                *("dot_any_f8_any_f8_f32", "dot_any_f8_any_f8_f32_fast_accum", "dot_f16_f16_f16", "dot_f16_f16_f32"),
                *("dot_bf16_bf16_bf16", "dot_bf16_bf16_f32", "dot_bf16_bf16_f32_x3", "dot_bf16_bf16_f32_x6"),
                *("dot_tf32_tf32_f32", "dot_tf32_tf32_f32_x3", "dot_f32_f32_f32", "dot_f64_f64_f64"),
                "dot_bf16_bf16_f32_x9",
            )
        )
    ),
    "ShardingType": {
        0: "replicated",
        1: "maximal",
        2: "tuple",
        3: "other",
        4: "manual",
        5: "unknown",
        6: "unreduced",
    },
    "ConvolutionKind": {1: "fprop", 2: "dgrad", 3: "wgrad"},
    "ShardGroupType": {0: "shard_as", 1: "shard_like"},
}
"""The words of each enum by number, as HLO text spells them."""


def _fields(text: str) -> dict[int, Field]:
    fields: dict[int, Field] = {}
    for row in text.split():
        number, name, kind = (*row.split(":"), "int")[:3]
        fields[int(number)] = Field(name, kind.removesuffix("*"), kind.endswith("*"))
    return fields


MESSAGES: dict[str, dict[int, Field]] = {name: _fields(text) for name, text in _TEXT.items()}
"""The fields of each message by number."""
