"""The indexing maps of each HLO op: which elements of its operands an element of its result is made of.

In: instructions.  Out: indexing maps, as in XLA's `indexing_analysis.cc`.  Dimensions of an output-to-input map are
the indices of the result (of its first array, for a tuple); symbols run over what is summed or reduced; runtime
variables are start indices, read from memory (`runtime_variables` says from where, and that they are clamped to their
bounds).  An op without a known map has an empty list of maps.  Differences: a start index that is a constant is folded;
what a dynamic-update-slice's update covers, and what a convolution's batch group reads, is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from warpsmith.hlo.indexing import backward, forward, runtime, windows
from warpsmith.hlo.indexing.common import Maps, dims_of
from warpsmith.hlo.indexing.runtime import RuntimeVariable
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.opcodes import OPCODES
from warpsmith.indexing import IndexingMap, compose
from warpsmith.indexing.rewire import remove_unused_symbols

__all__ = [
    "Maps",
    "RuntimeVariable",
    "fusion_indexing",
    "input_to_output_indexing",
    "output_to_input_indexing",
    "runtime_variables",
]

_Rule = Callable[[HloInstruction], "list[Maps]"]
_InputRule = Callable[[HloInstruction, int], "Maps"]

_MOST_MAPS: Final = 64  # an operand read at more places than this counts as unknown


def output_to_input_indexing(instruction: HloInstruction) -> list[Maps]:
    """For each operand: the maps from an index of the result to the indices of the operand that it depends on."""
    rule = _OUTPUT_TO_INPUT.get(instruction.opcode)
    return [[] for _ in instruction.operands] if rule is None else rule(instruction)


def input_to_output_indexing(instruction: HloInstruction, operand: int) -> Maps:
    """The maps from an index of an operand to the indices of the result that depend on it."""
    rule = _INPUT_TO_OUTPUT.get(instruction.opcode)
    return [] if rule is None else rule(instruction, operand)


def runtime_variables(instruction: HloInstruction) -> tuple[RuntimeVariable, ...]:
    """The sources of the runtime variables in the op's maps, in their order."""
    rule = _RUNTIME.get(instruction.opcode)
    return () if rule is None else rule(instruction)


def fusion_indexing(computation: HloComputation, output: int = 0) -> list[Maps]:
    """For each parameter: the maps from an index of the root (element `output` of a tuple) to the parameter's indices.

    Maps along different paths that agree are listed once.  A parameter that an unknown op depends on, or that is read
    at more than 64 places, gets an empty list, as one that isn't read at all.
    """
    root = computation.root
    start = root.operands[output] if root.opcode == "tuple" else root
    found: dict[HloInstruction, dict[IndexingMap, None]] = {start: {IndexingMap.identity(dims_of(start)): None}}
    unknown: set[HloInstruction] = set()
    for instruction in reversed(computation.instructions):
        places = found.get(instruction, {})
        if not places and instruction not in unknown:
            continue
        lost = instruction in unknown or len(places) > _MOST_MAPS
        for operand, maps in zip(instruction.operands, output_to_input_indexing(instruction), strict=True):
            if lost or not maps:
                unknown.add(operand)
                continue
            collected = found.setdefault(operand, {})
            for place in places:
                for second in maps:
                    collected[remove_unused_symbols(compose(place, second).simplify())] = None
    return [
        [] if parameter in unknown or len(found.get(parameter, {})) > _MOST_MAPS else list(found.get(parameter, {}))
        for parameter in computation.parameters
    ]


def _fusion(instruction: HloInstruction) -> list[Maps]:
    return fusion_indexing(instruction.attr("calls", HloComputation))


_OUTPUT_TO_INPUT: Final[Mapping[str, _Rule]] = {
    **{name: forward.elementwise for name, row in OPCODES.items() if row.elementwise},
    "all-gather": forward.all_gather,
    "all-reduce": forward.elementwise,
    "bitcast": forward.bitcast,
    "bitcast-convert": forward.bitcast_convert,
    "broadcast": forward.broadcast,
    "concatenate": forward.concatenate,
    "constant": forward.no_operands,
    "convolution": windows.convolution,
    "dot": forward.dot,
    "dynamic-slice": runtime.dynamic_slice,
    "dynamic-update-slice": runtime.dynamic_update_slice,
    "fusion": _fusion,
    "gather": runtime.gather,
    "get-tuple-element": forward.same_place,
    "iota": forward.no_operands,
    "pad": windows.pad,
    "parameter": forward.no_operands,
    "reduce": forward.reduce,
    "reduce-window": windows.reduce_window,
    "reshape": forward.reshape,
    "reverse": forward.reverse,
    "scaled-dot": forward.scaled_dot,
    "slice": forward.slice,
    "transpose": forward.transpose,
}

_RUNTIME: Final[Mapping[str, Callable[[HloInstruction], tuple[RuntimeVariable, ...]]]] = {
    "dynamic-slice": runtime.dynamic_slice_sources,
    "dynamic-update-slice": runtime.dynamic_update_slice_sources,
    "gather": runtime.gather_sources,
}


_INPUT_TO_OUTPUT: Final[Mapping[str, _InputRule]] = {
    **{name: backward.elementwise for name, row in OPCODES.items() if row.elementwise},
    "bitcast": backward.bitcast,
    "bitcast-convert": backward.bitcast_convert,
    "broadcast": backward.broadcast,
    "concatenate": backward.concatenate,
    "reduce": backward.reduce,
    "reshape": backward.reshape,
    "reverse": backward.reverse,
    "slice": backward.slice,
    "transpose": backward.transpose,
}
