"""Which function emits which opcode.

In: nothing.  Out: `HANDLERS`.  An opcode that isn't here is refused by the emitter.
"""

from __future__ import annotations

from collections.abc import Mapping

from warpsmith.emitters.elemental import loops, structural
from warpsmith.emitters.elemental.elementwise import ELEMENTWISE, elementwise
from warpsmith.emitters.elemental.emitter import Handler

__all__ = ["HANDLERS"]

HANDLERS: Mapping[str, Handler] = {
    **dict.fromkeys(ELEMENTWISE, elementwise),
    **dict.fromkeys(("broadcast", "reshape", "reverse", "slice", "transpose"), structural.through_map),
    "bitcast": structural.bitcast,
    "bitcast-convert": structural.bitcast_convert,
    "concatenate": structural.concatenate,
    "constant": structural.constant,
    "convolution": loops.dot,
    "dot": loops.dot,
    "dynamic-slice": structural.dynamic_slice,
    "dynamic-update-slice": structural.dynamic_update_slice,
    "gather": structural.gather,
    "get-tuple-element": structural.get_tuple_element,
    "iota": structural.iota,
    "map": loops.call_map,
    "pad": structural.pad,
    "reduce": loops.reduce,
    "reduce-window": loops.reduce,
}
