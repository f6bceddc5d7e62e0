"""Barriers of a part of a block (bar.sync id, count): who meets whom, and what is wrong with a meeting.

Both machines share this.  Threads meet at one place in the code: a barrier that others would reach elsewhere hangs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpsmith.arrays import Array
from warpsmith.simt.core.results import WARP

__all__ = ["BARRIERS", "HELP", "Meeting", "Trouble", "meet", "mixed"]

BARRIERS = 16
"""How many barriers a block has."""
HELP = "the threads that a barrier counts must reach it at one place in the code, whole warps at a time"


@dataclass(frozen=True, slots=True)
class Trouble:
    """A finding's code, what is wrong in words, one thread that it concerns, and how many there are."""

    code: str
    cause: str
    lane: int
    count: int


@dataclass(frozen=True, slots=True)
class Meeting:
    """The threads that meet, those of a block with the same number in `group`, and each one's barrier; and what is
    wrong, if anything is.

    Where too many meet, which of them go on together isn't known: none of them are among `lanes`.
    """

    lanes: Array
    group: Array
    barrier: Array
    trouble: Trouble | None


def mixed(strangers: Array, meeting: Meeting) -> Trouble | None:
    """What is wrong where some of those who meet know nothing of the last meeting at their barrier."""
    if not strangers.size:
        return None
    number = int(meeting.barrier[np.searchsorted(meeting.lanes, strangers[0])])
    cause = f"other warps met at barrier {number} before, and nothing that these waited for came after that: "
    cause += "they may be counted together"
    return Trouble("barrier-members", cause, int(strangers[0]), strangers.shape[0])


def meet(mask: Array | None, number: Array, wanted: Array, blocks: int, per_block: int) -> Meeting:
    """Threads of a batch reach barrier `number`, which waits for `wanted` threads (each one item, or one a thread)."""
    threads = blocks * per_block
    everyone = np.ones(threads, np.bool_) if mask is None else np.broadcast_to(mask, (threads,))
    lanes = np.flatnonzero(everyone)
    number, wanted = (np.broadcast_to(each, (threads,))[lanes].astype(np.int64) for each in (number, wanted))
    warps = -(-per_block // WARP)
    block = lanes // per_block
    warp = block * warps + lanes % per_block // WARP
    key = block << 8 | number & 0xFF
    torn = _torn(everyone, lanes, warp, key, per_block)
    keys, first, where = np.unique(key, return_index=True, return_inverse=True)
    arrived = np.zeros(keys.shape[0], np.int64)
    rows = np.unique(np.stack([where, warp]), axis=1)
    np.add.at(arrived, rows[0], WARP)
    need = -(-wanted[first] // WARP) * WARP
    short = np.flatnonzero(arrived < need)
    trouble = _unknown(number, wanted, lanes) or torn
    if trouble is None and short.size:
        worst = int(short[0])
        missing = np.flatnonzero(~everyone[block[first[worst]] * per_block :][:per_block])
        lane = int(block[first[worst]] * per_block + (missing[0] if missing.size else 0))
        cause = f"barrier {int(number[first[worst]])} waits for {int(wanted[first[worst]])} threads of the block, "
        cause += f"{int(arrived[worst])} are here"
        trouble = Trouble("barrier-divergence", cause, lane, int(need[worst] - arrived[worst]))
    many = arrived > need
    if trouble is None and many.any():
        worst = int(many.argmax())
        cause = f"{int(arrived[worst])} threads meet at barrier {int(number[first[worst]])}, which waits for "
        cause += f"{int(wanted[first[worst]])}: which of them go on together isn't known"
        trouble = Trouble("barrier-members", cause, int(lanes[first[worst]]), int(arrived[worst]))
    fits = ~many[where]
    return Meeting(lanes[fits], where[fits], number[fits], trouble)


def _unknown(number: Array, wanted: Array, lanes: Array) -> Trouble | None:
    """A barrier that no block has, or a count that no warps make up."""
    for bad, cause in (
        ((number < 0) | (number >= BARRIERS), f"barrier {{number}}: a block has barriers 0 to {BARRIERS - 1}"),
        ((wanted <= 0) | (wanted % WARP != 0), "barrier {number} waits for {wanted} threads; it counts whole warps"),
    ):
        if bad.any():
            first = int(bad.argmax())
            words = cause.format(number=int(number[first]), wanted=int(wanted[first]))
            return Trouble("barrier-members", words, int(lanes[first]), int(bad.sum()))
    return None


def _torn(everyone: Array, lanes: Array, warp: Array, key: Array, per_block: int) -> Trouble | None:
    """A warp that isn't here as a whole, or not at one barrier."""
    least, most = (np.full(int(warp.max(initial=0)) + 1, fill, np.int64) for fill in (np.iinfo(np.int64).max, -1))
    np.minimum.at(least, warp, key)
    np.maximum.at(most, warp, key)
    threads = np.arange(everyone.shape[0], dtype=np.int64)
    warps = -(-per_block // WARP)
    of = threads // per_block * warps + threads % per_block // WARP
    present = np.isin(of, warp)
    away = np.flatnonzero(present & ~everyone)
    if away.size:
        cause = "some lanes of a warp wait here, others are elsewhere; a barrier counts whole warps"
        return Trouble("barrier-divergence", cause, int(away[0]), away.shape[0])
    split = np.flatnonzero(least[warp] != most[warp])
    if split.size:
        cause = "lanes of one warp wait at different barriers; a barrier counts whole warps"
        return Trouble("barrier-divergence", cause, int(lanes[split[0]]), split.shape[0])
    return None
