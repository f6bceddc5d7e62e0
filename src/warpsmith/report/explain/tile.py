"""What `explain` says of a tile kernel: each primitive's variant, its partition, and why others didn't take it.

In: a kernel and a target.  Out: `TileExplanation`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from warpsmith.arrays import Dim3
from warpsmith.compiler.tile.programs import dispatched_tile
from warpsmith.records import Record
from warpsmith.tile.dispatch import Choice
from warpsmith.tile.program import Kernel

__all__ = ["TileExplanation", "tile_explanation"]


@dataclass(frozen=True, slots=True)
class TileExplanation(Record):
    """A tile kernel on a target: its launch (shared memory in bytes, and those of them that a launch gives), and one
    choice a primitive.  `str()` has a paragraph a primitive."""

    kernel: str
    target: str
    grid: Dim3
    block: Dim3
    shared_bytes: int
    dynamic_shared_bytes: int
    choices: tuple[Choice, ...]

    def __str__(self) -> str:
        lines = [f"kernel {self.kernel}: grid {self.grid}, block {self.block}"]
        for choice in self.choices:
            lines.append(f"{choice.location.file}:{choice.location.line}: {choice.call}")
            lines.append(f"  {choice.variant}: {choice.partition}")
            lines += [f"  not {name}: {reason}" for name, reason in choice.rejected]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as `warpsmith explain --json` writes of a tile kernel."""
        return {
            "kernel": self.kernel,
            "target": self.target,
            "grid": list(self.grid),
            "block": list(self.block),
            "shared_bytes": self.shared_bytes,
            "dynamic_shared_bytes": self.dynamic_shared_bytes,
            "primitives": [
                {
                    "call": choice.call,
                    "file": choice.location.file,
                    "line": choice.location.line,
                    "variant": choice.variant,
                    "partition": choice.partition,
                    "refused": [{"variant": name, "reason": reason} for name, reason in choice.rejected],
                }
                for choice in self.choices
            ],
        }


def tile_explanation(kernel: Kernel, target: str) -> TileExplanation:
    """Dispatch a kernel, and say what was chosen.  Raises DispatchFailed, UnknownTarget and UsageError."""
    made = dispatched_tile(kernel, target)
    launch = kernel.launch
    sizes = (made.launch.shared_bytes, made.launch.dynamic_shared)
    return TileExplanation(kernel.name, target, launch.grid, launch.block, *sizes, made.origin.choices)
