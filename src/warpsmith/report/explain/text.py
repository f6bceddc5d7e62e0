"""An explanation as text: a section a kernel, what was chosen first, then what it does, then what it costs.

In: kernels and host steps, explained.  Out: text.  Labels stand in a column; long lines are folded behind them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpsmith.report.explain.facts import HostStep, KernelExplanation, Traffic
from warpsmith.report.words import WIDTH, Line, byte_count, dims, folded

__all__ = ["WIDTH", "explanation_text"]

_LABEL = 12


def explanation_text(
    heading: str, kernels: Sequence[KernelExplanation], host: Sequence[HostStep], width: int = WIDTH
) -> str:
    """The whole of it, in lines of at most `width` characters."""
    parts = [heading]
    parts += ["\n".join([_headline(kernel), *folded(_lines(kernel), _LABEL, width)]) for kernel in kernels]
    if host:
        parts.append("\n".join(f"host {each.name} = {each.opcode}: {each.reason}" for each in host))
    if not kernels and not host:
        parts.append("the module computes nothing: it has neither kernels nor host steps")
    return "\n\n".join(parts)


def _headline(kernel: KernelExplanation) -> str:
    variant = f" ({kernel.variant})" if kernel.variant else ""
    others = len(kernel.fusions) - 1
    more = f", and {others} more that are the same kernel" if others else ""
    return f"kernel {kernel.name}: {kernel.emitter}{variant}{more}"


def _lines(kernel: KernelExplanation) -> Iterator[Line]:
    yield "hero", kernel.hero
    label = "refused"
    for each in kernel.refused:
        yield label, f"{each.emitter}: {each.reason}"
        label = ""
    yield "launch", _launch(kernel)
    yield "indices", f"{kernel.index_bits} bits: {kernel.index_reason}"
    yield from _maps(kernel)
    yield "memory", _memory(kernel)
    yield from _traffic(kernel)
    yield from _machine(kernel)
    yield from _times(kernel)
    label = "advice"
    for each in kernel.advice:
        yield label, each
        label = ""
    for each in kernel.notes:
        yield "note", each


def _launch(kernel: KernelExplanation) -> str:
    if not kernel.is_gpu:
        vectors = f"vectors of {kernel.lanes} elements" if kernel.lanes > 1 else "no vectors"
        chunk = f"{kernel.chunk} elements or rows" if kernel.chunk > 1 else "1 element or row"
        text = f"{_counted(kernel.grid[0], 'work group')} of up to {chunk}, {vectors}"
        if kernel.tables:
            text += f", looked up in tables ({', '.join(byte_count(n) for n in kernel.tables)})"
        else:
            text += ", computed directly"
        return text + (", written past the caches" if kernel.streams else "")
    each = f"{kernel.unroll} neighbouring elements" if kernel.unroll > 1 else "1 element"
    shared = f"{kernel.shared_bytes} bytes of shared memory a block" if kernel.shared_bytes else "no shared memory"
    blocks = "1 block" if max(kernel.grid) == 1 else f"{dims(kernel.grid)} blocks"
    launch = f"{blocks} of {dims(kernel.block)} threads"
    return f"{launch}, a thread takes {each} at a time, {shared}"


def _maps(kernel: KernelExplanation) -> Iterator[Line]:
    for access in kernel.accesses:
        yield access.verb, access.words
        yield "", access.map
    for title, text in kernel.other_maps:
        yield "map", f"{title}: {text}"
    for output, source in kernel.in_place:
        yield "in place", f"'{output}' shares the buffer of '{source}': elements that aren't updated stay"
    for each in kernel.dependences:
        yield "needs", f"{each.root}[i] of {each.parameter}: {each.words}"
        yield "", each.map


def _memory(kernel: KernelExplanation) -> str:
    read, written = byte_count(kernel.bytes_read), byte_count(kernel.bytes_written)
    text = f"at least {byte_count(kernel.bytes_least)}: inputs once ({read}) and outputs once ({written})"
    if kernel.bytes_moved is None:
        return text
    ratio = kernel.bytes_moved / max(1, kernel.bytes_least)
    blocks = kernel.grid[0] * kernel.grid[1] * kernel.grid[2]
    how = f"{kernel.blocks_run} of {blocks} blocks" if kernel.blocks_run < blocks else f"all {blocks} blocks"
    if blocks == 1:
        how = "its block"
    about = "about " if kernel.blocks_run < blocks else ""
    return f"{text}; moved {about}{byte_count(kernel.bytes_moved)}, {ratio:.2f} times that ({how} simulated)"


def _traffic(kernel: KernelExplanation) -> Iterator[Line]:
    label = "accesses"
    for each in kernel.traffic:
        if each.space == "global":
            yield label, _sectors(each)
            label = ""
    label = "banks"
    for each in kernel.traffic:
        if each.space == "shared":
            yield label, _banks(each)
            label = ""


_VERBS = {"load": "reads", "store": "writes", "atomic": "combines into"}


def _sectors(each: Traffic) -> str:
    ideal = each.ideal_sectors / max(1, each.warps)
    text = f"{_VERBS[each.kind]} {each.buffer}, {each.bits} bits a thread: "
    text += f"{each.sectors_per_access:.2f} sectors a warp access"
    text += f", {ideal:.2f} ideal" if each.ideal_sectors < each.sectors else ", the ideal"
    return text + (f"; up to {each.contention} threads at one address" if each.contention > 1 else "")


def _banks(each: Traffic) -> str:
    text = f"{_VERBS[each.kind]} {each.bits} bits a thread: "
    if not each.conflicts:
        return text + "no conflicts"
    return text + f"{each.wavefronts / max(1, each.ideal_wavefronts):.2f} turns for each that would do, by conflicts"


def _machine(kernel: KernelExplanation) -> Iterator[Line]:
    if not kernel.is_gpu:
        return
    found = kernel.resources
    if found is not None:
        spills = found.spill_stores + found.spill_loads
        yield "registers", f"{found.registers} a thread, " + (f"{spills} bytes of spills" if spills else "no spills")
    held = kernel.occupancy
    if held is not None:
        text = (
            f"{held.fraction:.0%}: {held.blocks} blocks, {held.warps} warps a multiprocessor, limited by {held.limiter}"
        )
        yield "occupancy", text + ("" if kernel.waves is None else f"; {kernel.waves:.2f} waves")


def _times(kernel: KernelExplanation) -> Iterator[Line]:
    times = kernel.roofline
    operations = f"{kernel.work.operations} operations"
    if times.time_us is None:
        yield "roofline", f"{operations}; this machine's bandwidth is no constant: `warpsmith run` measures it"
    else:
        parts = [("memory", times.memory_us), ("arithmetic", times.arithmetic_us), ("issue", times.issue_us)]
        known = ", ".join(f"{name} {us:.2f}" for name, us in parts if us is not None)
        yield "roofline", f"{times.time_us:.2f} us at best, bound by {times.bound} (us: {known}); {operations}"
    largest = kernel.largest
    if largest is not None:
        place = f" ({largest.file}:{largest.line})" if largest.line else ""
        yield "largest", f"{largest.what}; from '{largest.instruction}'{place}"


def _counted(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"
