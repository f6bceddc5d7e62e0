"""HLO rewrites by name: forms that say the same with less, for emitters and for readers.

In: a module and names (`"gather-simplifier,comparison-expander"`).  Out: the module rewritten.  `tree-reduction` and
`scatter-order` work on fusions, so that they wrap ops first, and depend on the target.  Emitters here also take the
general forms, whose indexing maps are known; the rewrites give the forms that XLA's emitters are written for, and what
`warpsmith hlo print --rewrites` shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from warpsmith.devices import Device
from warpsmith.errors import UnknownPass, did_you_mean
from warpsmith.hlo.module import HloModule
from warpsmith.hlo_passes import (
    comparison_expander,
    dot_operand_upcaster,
    dynamic_index_splitter,
    gather_simplifier,
    inline_calls,
    scatter_order,
    scatter_simplifier,
    tree_reduction,
)
from warpsmith.hlo_passes.wrap import wrap

__all__ = ["REWRITES", "apply"]

Rewrite = Callable[[HloModule, Device], HloModule]


def _anywhere(run: Callable[[HloModule], HloModule]) -> Rewrite:
    return lambda module, _: run(module)


REWRITES: Mapping[str, Rewrite] = {
    "inline-calls": _anywhere(inline_calls.inline_calls),
    gather_simplifier.NAME: _anywhere(gather_simplifier.run),
    scatter_simplifier.NAME: _anywhere(scatter_simplifier.run),
    dynamic_index_splitter.NAME: _anywhere(dynamic_index_splitter.run),
    dot_operand_upcaster.NAME: _anywhere(dot_operand_upcaster.run),
    comparison_expander.NAME: _anywhere(comparison_expander.run),
    scatter_order.NAME: lambda module, target: scatter_order.keep_order(
        wrap(module, takes=scatter_order.keeps_order), target
    ),
    "tree-reduction": lambda module, target: tree_reduction.split_reductions(wrap(module), target),
}
"""Every rewrite by name."""


def apply(module: HloModule, names: str, target: Device) -> HloModule:
    """`module` after the named rewrites, separated by commas, in order.  UnknownPass for another name."""
    for name in (each.strip() for each in names.split(",")):
        run = REWRITES.get(name)
        if run is None:
            raise UnknownPass(
                f"no HLO rewrite is called '{name}'",
                help=did_you_mean(name, REWRITES) or f"known: {', '.join(REWRITES)}",
            )
        module = run(module, target)
    return module
