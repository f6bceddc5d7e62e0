"""Whether a fusion's dynamic-update-slices may write into their operand's buffer.

In: the body of a fusion and its roots.  Out: the updates in root order, or the failed condition.
XLA: `CanEmitFusedDynamicUpdateSliceInPlaceForGpu` of `xla/service/gpu/ir_emission_utils.cc`; what buffer assignment
adds there is the schedule's to see to.
"""

from __future__ import annotations

from warpsmith.fusion.reasons import Reason, reason
from warpsmith.fusion.traversal import is_elementwise, is_parameter
from warpsmith.hlo.module import HloComputation, HloInstruction

__all__ = ["in_place_updates", "keeps_memory_order"]


def in_place_updates(body: HloComputation, roots: tuple[HloInstruction, ...]) -> tuple[HloInstruction, ...] | Reason:
    """The dynamic-update-slice of each root; otherwise the condition that fails."""
    updates: list[HloInstruction] = []
    for root in roots:
        update = root.operands[0] if root.opcode == "bitcast" else root
        if update.opcode != "dynamic-update-slice":
            return reason(f"the root is '{update.name} = {update.opcode}', no dynamic-update-slice")
        updates.append(update)
    shape = updates[0].operands[1].shape
    if any(update.operands[1].shape != shape for update in updates):
        shapes = ", ".join(dict.fromkeys(str(update.operands[1].shape) for update in updates))
        return reason(f"the updates differ in shape: {shapes}")
    for update in updates:
        hazard = _hazard(body, update)
        if hazard is not None:
            return hazard
    return tuple(updates)


def _hazard(body: HloComputation, update: HloInstruction) -> Reason | None:
    user = update
    while True:
        users = [each for each in body.users(user) if each.opcode != "tuple"]
        if not users:
            break
        if len(users) > 1 or users[0].opcode != "bitcast":
            names = ", ".join(f"'{each.name}'" for each in users)
            return reason(f"'{update.name}' is used by {names}: only one bitcast may stand behind it")
        user = users[0]
    buffer = update.operands[0]
    if not keeps_memory_order(update):
        return reason(
            f"'{update.name}' has another layout than the buffer that it updates: {update.shape} and {buffer.shape}"
        )
    if buffer.opcode == "bitcast":
        buffer = buffer.operands[0]
    if not is_parameter(buffer):
        return reason(
            f"the updated operand '{buffer.name}' of '{update.name}' is computed inside the fusion ({buffer.opcode}): "
            "it is no buffer to write into"
        )
    seen: set[HloInstruction] = {update}
    stack = list(body.users(buffer))
    while stack:
        reader = stack.pop()
        if reader in seen:
            continue
        seen.add(reader)
        if reader.opcode == "dynamic-slice":
            if not _same_place(reader, update):
                return reason(f"'{reader.name}' reads '{buffer.name}' at another place than '{update.name}' writes")
            continue
        if reader.opcode == "dynamic-update-slice":
            return reason(f"both '{reader.name}' and '{update.name}' update '{buffer.name}'")
        if not (is_elementwise(reader) or reader.opcode in ("bitcast", "tuple")):
            return reason(
                f"'{reader.name}' ({reader.opcode}) reads '{buffer.name}' at other elements than its own, which "
                "another thread may have written"
            )
        stack.extend(body.users(reader))
    return None


def keeps_memory_order(update: HloInstruction) -> bool:
    """Whether elements of the result lie where those of the updated operand do."""
    return update.array_shape.minor_to_major == update.operands[0].array_shape.minor_to_major


def _same_place(slice_: HloInstruction, update: HloInstruction) -> bool:
    """A dynamic-slice of just what the update overwrites, by the identical index instructions."""
    if slice_.operands[0] is not update.operands[0]:
        return False
    shape = update.operands[1].array_shape
    if slice_.array_shape.dims != shape.dims or slice_.array_shape.dtype is not shape.dtype:
        return False
    return slice_.operands[1:] == update.operands[2:] or shape.elements == 1
