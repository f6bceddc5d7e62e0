"""What a kernel's largest cost is, and one line for each thing that is off.

In: measured counters, work, times; an explanation.  Out: `Cost`, sentences.  The thresholds stand first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from warpsmith.devices import Device
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.report.explain.facts import Cost, KernelExplanation
from warpsmith.report.explain.measure import Measured
from warpsmith.report.explain.roofline import Roofline, Work, operations
from warpsmith.simt.core.results import AccessCounters

__all__ = ["advice", "largest_cost"]

LEAST_EFFICIENCY = 0.75  # ideal sectors over sectors
LEAST_OCCUPANCY = 0.5
MOST_CONFLICTS = 0.1  # turns of banks that conflicts add, of all turns
MOST_RELOADS = 1.5  # bytes moved over the least


def largest_cost(fusion: HloInstruction, measured: Measured, work: Work, times: Roofline) -> Cost | None:
    """Of a kernel bound by memory, the access that moves most sectors; by issue, the op with most instructions; by
    arithmetic, and where nothing was measured, the op with most operations.
    """
    body, counters = fusion.attr("calls", HloComputation), measured.counters
    if times.bound == "issue":
        found = _most_instructions(body, measured)
        if found is not None:
            return found
    if times.bound != "memory" and work.largest is not None:
        return _cost(f"{operations(work.largest)} of {work.operations} operations", work.largest)
    accesses = [each for each in counters.accesses if each.space == "global"] if counters is not None else []
    if not accesses:
        return None
    totals: dict[tuple[str, str], int] = {}
    for each in accesses:
        totals[each.kind, each.buffer] = totals.get((each.kind, each.buffer), 0) + each.sectors
    kind, buffer = max(totals, key=lambda key: totals[key])
    share = totals[kind, buffer] / max(1, sum(totals.values()))
    site = _sited([each for each in accesses if (each.kind, each.buffer) == (kind, buffer)]).site
    what = f"{_GERUNDS[kind]} {buffer}: {share:.0%} of the sectors moved"
    if not site.file_line:
        origin = next((each for each in body if each.name == buffer), body.root)
        number = origin.parameter_number
        # A fusion that we made has parameters that nobody wrote: what feeds them was written.
        return _cost(what, origin if origin.span is not None or number is None else fusion.operands[number])
    return Cost(what, ", ".join(site.instructions) or buffer, site.file, site.file_line)


def _most_instructions(body: HloComputation, measured: Measured) -> Cost | None:
    """The op whose line most instructions stem from."""
    by_line = {each.span.line: each for each in body if each.span is not None}
    known = {line: count for line, count in measured.instructions.items() if line in by_line}
    if not known:
        return None
    line = max(known, key=lambda each: known[each])
    share, opcode = known[line] / sum(measured.instructions.values()), by_line[line].opcode
    does = "read a parameter" if opcode == "parameter" else f"compute its {opcode}"
    return _cost(f"{share:.0%} of the kernel's instructions {does}", by_line[line])


def _cost(what: str, instruction: HloInstruction) -> Cost:
    span = instruction.span
    return Cost(what, instruction.name, span.file if span else "", span.line if span else 0)


_GERUNDS = {"load": "reading", "store": "writing", "atomic": "combining into"}


def _sited(accesses: list[AccessCounters]) -> AccessCounters:
    """The access with most sectors, among those whose place in the HLO is known if there are any."""
    known = [each for each in accesses if each.site.file_line]
    return max(known or accesses, key=lambda each: each.sectors)


def advice(facts: KernelExplanation, target: Device) -> Iterator[str]:
    """A line for each thing that is off; nothing for a kernel that has none."""
    for rule in _GPU if target.is_gpu else _CPU:
        yield from rule(facts, target)


def _uncoalesced(facts: KernelExplanation, target: Device) -> Iterator[str]:
    for each in facts.traffic:
        if each.space == "global" and each.ideal_sectors < LEAST_EFFICIENCY * each.sectors:
            yield (
                f"{_GERUNDS[each.kind]} {each.buffer} is uncoalesced: {each.sectors_per_access:.1f} sectors a warp "
                f"access, {each.ideal_sectors / max(1, each.warps):.1f} would do"
            )


def _conflicts(facts: KernelExplanation, target: Device) -> Iterator[str]:
    turns = sum(each.wavefronts for each in facts.traffic)
    added = sum(each.conflicts for each in facts.traffic)
    if added > MOST_CONFLICTS * turns:
        yield f"bank conflicts add {added} of {turns} turns of shared memory"


def _contention(facts: KernelExplanation, target: Device) -> Iterator[str]:
    most = max((each.contention for each in facts.traffic), default=0)
    if most > 1:
        yield f"atomics contend: up to {most} threads of a warp meet at one address"


def _reloads(facts: KernelExplanation, target: Device) -> Iterator[str]:
    if facts.bytes_moved is not None and facts.bytes_moved > MOST_RELOADS * facts.bytes_least:
        ratio = facts.bytes_moved / max(1, facts.bytes_least)
        yield f"{ratio:.1f} times the least bytes go through L2: elements are read more than once, or in part"


def _few_blocks(facts: KernelExplanation, target: Device) -> Iterator[str]:
    blocks = facts.grid[0] * facts.grid[1] * facts.grid[2]
    if blocks < target.core_count:
        yield f"only {blocks} of {target.core_count} multiprocessors get{'s' if blocks == 1 else ''} a block"


def _low_occupancy(facts: KernelExplanation, target: Device) -> Iterator[str]:
    held = facts.occupancy
    if held is not None and held.fraction < LEAST_OCCUPANCY:
        share = f"{held.fraction:.0%} of what it could hold"
        yield f"low occupancy: {held.warps} warps a multiprocessor, {share}, limited by {held.limiter}"


def _spills(facts: KernelExplanation, target: Device) -> Iterator[str]:
    found = facts.resources
    if found is not None and found.spill_stores + found.spill_loads:
        spills = found.spill_stores + found.spill_loads
        yield f"{spills} bytes of spills: the kernel wants more registers than a thread has"


def _wide_indices(facts: KernelExplanation, target: Device) -> Iterator[str]:
    if facts.index_bits == 64:
        yield f"64-bit indices cost registers and instructions: {facts.index_reason}"


def _scalar(facts: KernelExplanation, target: Device) -> Iterator[str]:
    if facts.lanes <= 1:
        yield "it computes an element at a time: no loop of it has become vectors"


Rule = Callable[[KernelExplanation, Device], Iterator[str]]
_GPU: tuple[Rule, ...] = (
    _uncoalesced,
    _conflicts,
    _contention,
    _reloads,
    _few_blocks,
    _low_occupancy,
    _spills,
    _wide_indices,
)
_CPU: tuple[Rule, ...] = (_scalar,)
