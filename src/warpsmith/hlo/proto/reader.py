"""A module out of serialised HLO.

In: the bytes of an HloModuleProto, an HloProto or an HloSnapshot; which of them, the bytes tell.  Out: a module, and of
a snapshot the arguments and results that were recorded with it.  BadProto where bytes or ids mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from warpsmith.arrays import Array
from warpsmith.errors import BadProto
from warpsmith.hlo.attributes import Alias, Donor, EntryLayout, StackFrames
from warpsmith.hlo.literals import Literal
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule, frozen
from warpsmith.hlo.opcodes import lookup
from warpsmith.hlo.proto.attributes import attributes_of, frontend_attributes
from warpsmith.hlo.proto.values import literal, shape
from warpsmith.hlo.proto.wire import Message, decode
from warpsmith.hlo.shapes import Shape
from warpsmith.hlo.text.printer import STACK_FRAMES

__all__ = ["Snapshot", "read_proto"]


_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.\-]")
_WORDS = {
    "comparison_direction": ("EQ", "NE", "LT", "LE", "GT", "GE"),
    "comparison_type": ("FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"),
    "fusion_kind": ("kLoop", "kInput", "kOutput", "kCustom"),
}
"""Text fields that hold one of a few words."""

_KINDS = {"Module": (), "HloProto": ("hlo_module",), "HloSnapshot": ("hlo", "hlo_module")}
"""What the bytes may be, and where the module is in it."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A module with what one run of it took and gave: one array a leaf; empty where nothing was recorded."""

    module: HloModule
    arguments: tuple[Array, ...] = ()
    results: tuple[Array, ...] = ()


def read_proto(data: bytes) -> Snapshot:
    """The module of serialised HLO.  BadProto, UnknownOpcode and InvalidHlo for what isn't one."""
    errors: list[BadProto] = []
    for kind, path in _KINDS.items():
        try:
            message = whole = decode(data, kind)
            for part in path:
                whole = whole[part]
            if not whole["computations"]:
                raise BadProto(f"this isn't a {kind}: it holds no computation")
        except BadProto as error:
            errors.append(error)
            continue
        module = _module(whole)
        if kind != "HloSnapshot":
            return Snapshot(module)
        arguments = tuple(each for part in message["arguments"] for each in _leaves(literal(part)))
        return Snapshot(module, arguments, tuple(_leaves(literal(message["result"]))) if "result" in message else ())
    raise BadProto(
        "this is neither HLO text nor serialised HLO",
        help="give HLO text, an HloModuleProto, an HloProto or an HloSnapshot (XLA: --xla_dump_hlo_as_proto, "
        "--xla_dump_hlo_snapshots)",
    ) from errors[0]


def _leaves(value: Literal) -> list[Array]:
    if value.is_tuple:
        return [leaf for each in value.elements for leaf in _leaves(each)]
    return [value.array]


def _module(message: Message) -> HloModule:
    built: dict[int, HloComputation] = {}
    for each in message["computations"]:
        built[each["id"]] = _computation(each, built)
    entry = built.get(message["entry_computation_id"])
    if entry is None:
        raise BadProto(f"the entry has id {message['entry_computation_id']}, which no computation has")
    return HloModule(message["name"], tuple(built.values()), entry, frozen(_header(message)))


def _header(message: Message) -> dict[str, object]:
    """The header's fields, in the order of XLA's text."""
    found: dict[str, object] = {}
    if "schedule" in message:
        found["is_scheduled"] = True
    aliases = [
        Alias(tuple(e["output_shape_index"]), e["parameter_number"], tuple(e["parameter_shape_index"]), e["kind"])
        for e in message["input_output_alias"]["entries"]
    ]
    if aliases:
        found["input_output_alias"] = tuple(aliases)
    donors = [
        Donor(each["parameter_number"], tuple(each["parameter_shape_index"]))
        for each in message["buffer_donor"]["entries"]
    ]
    if donors:
        found["buffer_donor"] = tuple(donors)
    program = message["host_program_shape"]
    if "result" in program:
        found["entry_computation_layout"] = EntryLayout(
            tuple(shape(each) for each in program["parameters"]), shape(program["result"])
        )
    if (kept := frontend_attributes(message)) is not None:
        found["frontend_attributes"] = kept
    if message["stack_frame_index"]["stack_frames"]:
        found[STACK_FRAMES] = _stack_frames(message["stack_frame_index"])
    return found


def _stack_frames(message: Message) -> StackFrames:
    def rows(field: str) -> tuple[tuple[tuple[str, int], ...], ...]:
        return tuple(tuple((name, number) for name, number in each.items()) for each in message[field])

    return StackFrames(
        tuple(message["file_names"]), tuple(message["function_names"]), rows("file_locations"), rows("stack_frames")
    )


def _computation(message: Message, built: Mapping[int, HloComputation]) -> HloComputation:
    by_id: dict[int, HloInstruction] = {}
    for each in message["instructions"]:
        by_id[each["id"]] = _instruction(each, by_id, built)
    root = by_id.get(message["root_id"])
    if root is None:
        raise BadProto(f"the root of computation '{message['name']}' has id {message['root_id']}: no such instruction")
    thread = message["execution_thread"]
    attributes = {"execution_thread": thread} if thread not in ("", "main") else {}
    return HloComputation(_name(message, "a computation"), tuple(by_id.values()), root, frozen(attributes))


def _name(message: Message, what: str) -> str:
    """The name of an instruction or computation, in text's letters: others become `_`, as where XLA reads a proto."""
    name = _NOT_IN_NAMES.sub("_", message["name"])
    if not name:
        raise BadProto(f"{what} has no name (its id is {message['id']})")
    return name if name[0].isalpha() or name[0] == "_" else f"_{name}"


def _instruction(
    message: Message, by_id: Mapping[int, HloInstruction], built: Mapping[int, HloComputation]
) -> HloInstruction:
    name, opcode = _name(message, "an instruction"), message["opcode"]
    if lookup(opcode) is None:
        raise BadProto(f"instruction '{name}' has opcode '{opcode}', which isn't known here")
    for field, words in _WORDS.items():
        if message[field] and message[field] not in words:
            raise BadProto(f"instruction '{name}' has {field} '{message[field]}', not one of {', '.join(words)}")
    try:
        operands = tuple(by_id[each] for each in message["operand_ids"])
        before = [by_id[each] for each in message["control_predecessor_ids"]]
        called = [built[each] for each in message["called_computation_ids"]]
    except KeyError as error:
        raise BadProto(f"instruction '{name}' refers to id {error.args[0]}, which nothing before it has") from None
    if opcode == "conditional":
        first = operands[0].shape if operands else None
        message["pred_index"] = isinstance(first, Shape) and first.dtype.name == "pred"
    attributes = attributes_of(message, called, before)
    if opcode == "compare" and message["comparison_type"] and operands:
        implied = _comparison_type(operands[0])
        if message["comparison_type"] != implied:
            attributes["type"] = message["comparison_type"]
    return HloInstruction(
        name,
        opcode,
        shape(message["shape"]),
        operands,
        frozen(attributes),
        literal(message["literal"]).with_shape(shape(message["shape"])) if opcode == "constant" else None,
        message["parameter_number"] if opcode == "parameter" else None,
    )


def _comparison_type(operand: HloInstruction) -> str:
    """What `type=` would say if it said nothing new."""
    if not isinstance(operand.shape, Shape):
        return ""  # the verifier refuses the comparison
    dtype = operand.shape.dtype
    if dtype.is_float or dtype.is_complex:
        return "FLOAT"
    return "SIGNED" if dtype.kind.value.startswith("s") else "UNSIGNED"
