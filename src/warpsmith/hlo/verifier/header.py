"""Rules of a module's header: the entry's layout, shared and donated memory, how many devices run.

In: a module.  Out: nothing, or InvalidHlo at the entry.  As XLA, the layouts that the header states may differ from
those in the body, which a layout pass hasn't reached yet; types and sizes may not.
"""

from __future__ import annotations

from typing import cast

from warpsmith.errors import InvalidHlo
from warpsmith.hlo.attributes import Alias, Donor, EntryLayout
from warpsmith.hlo.module import HloModule
from warpsmith.hlo.shapes import AnyShape
from warpsmith.hlo.verifier.calls import part_of
from warpsmith.hlo.verifier.common import brief, compatible, is_static
from warpsmith.hlo.verifier.statements import STATEMENTS

__all__ = ["verify_header"]


def _fail(module: HloModule, rule: str, cause: str) -> InvalidHlo:
    return InvalidHlo(f"{cause} (in module '{module.name}')", span=module.entry.span, help=STATEMENTS[rule], rule=rule)


def verify_header(module: HloModule) -> None:
    """InvalidHlo when a header field doesn't fit the entry."""
    _counts(module)
    _entry_layout(module)
    _aliases(module)


def _counts(module: HloModule) -> None:
    for name in ("replica_count", "num_partitions"):
        count = module.attributes.get(name, 1)
        if not isinstance(count, int) or count < 1:
            raise _fail(module, "module.counts", f"{name} is {count}")


def _entry_layout(module: HloModule) -> None:
    layout = module.attributes.get("entry_computation_layout")
    if not isinstance(layout, EntryLayout):
        return
    parameters = module.entry.parameters
    if len(layout.parameters) != len(parameters):
        raise _fail(
            module,
            "module.entry-layout",
            f"entry_computation_layout has {len(layout.parameters)} parameters, the entry {len(parameters)}",
        )
    for stated, parameter in zip(layout.parameters, parameters, strict=True):
        if not compatible(stated, parameter.shape):
            raise _fail(
                module,
                "module.entry-layout",
                f"entry_computation_layout gives '{parameter.name}' {brief(stated)}, it is {brief(parameter.shape)}",
            )
    if not compatible(layout.result, module.entry.root.shape):
        raise _fail(
            module,
            "module.entry-layout",
            f"entry_computation_layout ends in {brief(layout.result)}, the entry in {brief(module.entry.root.shape)}",
        )


def _parameter_part(module: HloModule, number: int, index: tuple[int, ...]) -> AnyShape | None:
    parameters = module.entry.parameters
    return part_of(parameters[number].shape, index) if 0 <= number < len(parameters) else None


def _aliases(module: HloModule) -> None:
    """Each output and each part of a parameter is shared or donated once, and what is shared has one size."""
    outputs: set[tuple[int, ...]] = set()
    inputs: set[tuple[int, tuple[int, ...]]] = set()
    for each in cast("tuple[object, ...]", module.attributes.get("input_output_alias", ())):
        if not isinstance(each, Alias):
            continue
        made = part_of(module.entry.root.shape, each.output)
        given = _parameter_part(module, each.number, each.index)
        if made is None or given is None:
            raise _fail(module, "alias.index", f"input_output_alias has no such parts: {each}")
        if is_static(made, given) and made.byte_size != given.byte_size:
            raise _fail(module, "alias.shape", f"input_output_alias {each} joins {brief(made)} and {brief(given)}")
        if each.output in outputs or (each.number, each.index) in inputs:
            raise _fail(module, "alias.once", f"input_output_alias shares a part twice: {each}")
        outputs.add(each.output)
        inputs.add((each.number, each.index))
    for each in cast("tuple[object, ...]", module.attributes.get("buffer_donor", ())):
        if not isinstance(each, Donor):
            continue
        if _parameter_part(module, each.number, each.index) is None:
            raise _fail(module, "alias.index", f"buffer_donor has no such part: {each}")
        if (each.number, each.index) in inputs:
            raise _fail(module, "alias.once", f"buffer_donor names a part that is shared or donated already: {each}")
        inputs.add((each.number, each.index))
