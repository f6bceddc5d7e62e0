"""Checks that both machines share: a list of findings, a grid's places, torn barriers, a device's limits."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from warpsmith.arrays import Array, Dim3
from warpsmith.devices import Device
from warpsmith.errors import CheckFailed, SimulationError, Span
from warpsmith.simt.core.results import WARP, Finding

__all__ = ["Checks", "Findings", "check_limits", "check_memory", "fail", "torn_block", "triple"]


class Findings:
    """Findings in the order they were made, each once."""

    def __init__(self) -> None:
        self.items: list[Finding] = []
        self._seen: set[Hashable] = set()

    def add(self, finding: Finding, key: Hashable) -> None:
        """Keep a finding unless one with this key is there."""
        if key not in self._seen:
            self._seen.add(key)
            self.items.append(finding)


@dataclass(frozen=True, slots=True)
class Checks:
    """What to look for while a kernel runs (slower): races and double writes, costs, and as far as the rest says it
    reads of what nobody wrote, writes to inputs, a device's limits.

    `names` are what messages call the buffers, in order; `read_only` the numbers of inputs; `fresh` those of buffers
    that the kernel must fill, with the bytes that count (the rest is padding); `packed` those with elements narrower
    than a byte, which are read to write a part of one.  `origins` has the HLO instructions of
    each line that a `.loc` may name.  `blocks`: run so many blocks at most, the first, the last and some between.
    `found` receives the findings, so that those before one that ends the run aren't lost.
    """

    names: Sequence[str] = ()
    read_only: Sequence[int] = ()
    fresh: Mapping[int, int] = field(default_factory=dict[int, int])
    packed: Sequence[int] = ()
    origins: Mapping[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    device: Device | None = None
    blocks: int | None = None
    found: Findings | None = None

    @property
    def warp_size(self) -> int:
        """Threads of a warp."""
        return WARP if self.device is None or not self.device.is_gpu else self.device.warp_size


def check_memory(size: int) -> None:
    """SimulationError for buffers of more bytes than this machine has memory."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not every system says
        return
    if size > memory:
        raise SimulationError(
            f"the kernel's buffers take {size} bytes, and this machine has {memory}", help="simulate a smaller problem"
        )


def fail(finding: Finding, *, cause: str = "", span: Span | None = None, help: str | None = None) -> NoReturn:
    """End the run: what the kernel does has no meaning on any hardware."""
    raise CheckFailed(cause or finding.message, finding=finding, span=span, help=help)


def triple(number: int, dims: Dim3) -> Dim3:
    """The (x, y, z) of a block in its grid, or a thread in its block."""
    return number % dims[0], number // dims[0] % dims[1], number // (dims[0] * dims[1])


def torn_block(mask: Array, finished: Array | None, blocks: int, per_block: int) -> tuple[int, int, int, int] | None:
    """The first block of which some threads are at a barrier and some elsewhere (not ended): its number in the batch,
    how many are here and elsewhere, and one of those elsewhere (numbered in the batch); None if there is none.
    """
    here = np.broadcast_to(mask, (blocks * per_block,)).reshape(blocks, per_block)
    away = ~here
    if finished is not None:
        away = away & ~finished.reshape(blocks, per_block)
    torn = np.flatnonzero(here.any(axis=1) & away.any(axis=1))
    if not torn.size:
        return None
    block = int(torn[0])
    lane = block * per_block + int(away[block].argmax())
    return block, int(here[block].sum()), int(away[block].sum()), lane


def check_limits(device: Device | None, grid: Dim3, block: Dim3, shared: int, dynamic: int = 0) -> list[Finding]:
    """What of a launch the device can't do.  `shared` bytes are declared by the kernel, `dynamic` given at launch."""
    if device is None or not device.is_gpu:
        return []
    found: list[Finding] = []
    threads = block[0] * block[1] * block[2]
    if threads > device.threads_per_block:
        found.append(
            Finding(
                "launch-limit", f"a block of {threads} threads; {device.title} has at most {device.threads_per_block}"
            )
        )
    for what, sizes, limits in (("block", block, device.block_limits), ("grid", grid, device.grid_limits)):
        for axis, size, limit in zip("xyz", sizes, limits, strict=True):
            if size > limit:
                found.append(
                    Finding("launch-limit", f"the {what} is {size} in {axis}; {device.title} has at most {limit}")
                )
    limit = device.shared_per_block if dynamic == 0 else device.shared_per_block_optin
    if shared + dynamic > limit:
        found.append(
            Finding(
                "shared-limit",
                f"a block has {shared + dynamic} bytes of shared memory; {device.title} takes at most {limit}"
                + (" that a kernel declares" if dynamic == 0 else ""),
                space="shared",
            )
        )
    return found
