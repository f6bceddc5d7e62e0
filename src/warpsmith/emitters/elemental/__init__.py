"""Elemental emission: one HLO op at given indices becomes scalar IR.

In: an instruction, index values, and who provides what lies outside the function.  Out: scalar values.
XLA: `xla/codegen/emitters/elemental_hlo_to_mlir.cc`.
"""

from warpsmith.emitters.elemental.emitter import ElementalEmitter, Values
from warpsmith.emitters.elemental.handlers import HANDLERS

__all__ = ["HANDLERS", "ElementalEmitter", "Values"]
