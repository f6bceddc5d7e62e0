"""How many blocks and warps of a kernel a multiprocessor holds at once, and what keeps it from holding more.

In: a device and what a block takes.  Out: `Occupancy`.  Rules: CUDA programming guide, "Technical specifications per
compute capability", and the occupancy calculator's allocation units: registers by 256 a warp, and for warps by four (a
multiprocessor has four parts); shared memory by 128 bytes, of which the system takes 1 KiB a block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warpsmith.devices.device import Device
from warpsmith.errors import UsageError

__all__ = ["Occupancy", "occupancy"]

_MOST_BLOCKS: Mapping[tuple[int, int], int] = {(8, 6): 16, (8, 9): 24}
_BLOCKS = 32
_REGISTER_UNIT = 256
_PARTS = 4
_SHARED_UNIT = 128
_SYSTEM_SHARED = 1024


@dataclass(frozen=True, slots=True)
class Occupancy:
    """`blocks` and `warps` that a multiprocessor holds, the `fraction` of the warps that it could, and what limits it.

    `limits` are the blocks that each of warps, blocks, registers and shared memory allow.
    """

    blocks: int
    warps: int
    limiter: str
    fraction: float
    limits: Mapping[str, int]


def occupancy(device: Device, threads: int, registers: int = 0, shared: int = 0) -> Occupancy:
    """The occupancy of blocks of `threads`, with `registers` a thread (0: unknown) and `shared` bytes a block.

    A block that the device can't launch gives 0 blocks.  UsageError for a device that is no GPU, or no threads.
    """
    if not device.is_nvidia or threads < 1:
        raise UsageError("occupancy is that of a block of threads on a GPU")
    warps = -(-threads // device.warp_size)
    most = device.threads_per_core // device.warp_size
    fits = threads <= device.threads_per_block
    limits = {"warps": most // warps if fits else 0, "blocks": _MOST_BLOCKS.get(device.compute_capability, _BLOCKS)}
    if registers:
        per_warp = -(-registers * device.warp_size // _REGISTER_UNIT) * _REGISTER_UNIT
        limits["registers"] = device.registers_per_core // per_warp // _PARTS * _PARTS // warps
    if shared:
        taken = -(-(shared + _SYSTEM_SHARED) // _SHARED_UNIT) * _SHARED_UNIT
        limits["shared"] = device.shared_per_core // taken if shared <= device.shared_per_block_optin else 0
    limiter = min(limits, key=lambda name: limits[name])
    blocks = limits[limiter]
    return Occupancy(blocks, blocks * warps, limiter, blocks * warps / most, limits)
