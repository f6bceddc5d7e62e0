"""What `explain` says of a tile kernel: each primitive's variant, its partition, and why others didn't take it.

In: a kernel and a target.  Out: text for people, and plain data for `--json`.
"""

from __future__ import annotations

from typing import Any

from warpsmith.compiler.tile.programs import dispatched_tile, explain_tile
from warpsmith.tile.program import Kernel

__all__ = ["tile_explanation", "tile_explanation_data"]


def tile_explanation(kernel: Kernel, target: str) -> str:
    """A paragraph a primitive, under the kernel's launch."""
    lines = [f"kernel {kernel.name}: grid {kernel.launch.grid}, block {kernel.launch.block}"]
    for choice in explain_tile(kernel, target):
        lines.append(f"{choice.location.file}:{choice.location.line}: {choice.call}")
        lines.append(f"  {choice.variant}: {choice.partition}")
        lines += [f"  not {name}: {reason}" for name, reason in choice.rejected]
    return "\n".join(lines)


def tile_explanation_data(kernel: Kernel, target: str) -> dict[str, Any]:
    """The same as data: kernel, target, its launch (shared memory in bytes, and those of them that a launch gives), and
    one object a primitive."""
    made = dispatched_tile(kernel, target)
    return {
        "kernel": kernel.name,
        "target": target,
        "grid": list(kernel.launch.grid),
        "block": list(kernel.launch.block),
        "shared_bytes": made.shared_bytes,
        "dynamic_shared_bytes": made.dynamic_shared_bytes,
        "primitives": [
            {
                "call": choice.call,
                "file": choice.location.file,
                "line": choice.location.line,
                "variant": choice.variant,
                "partition": choice.partition,
                "refused": [{"variant": name, "reason": reason} for name, reason in choice.rejected],
            }
            for choice in made.choices
        ],
    }
