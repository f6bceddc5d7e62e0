"""The tables of tile-kernels.md: what the kernels of examples/tile/ compute, and what the simulator counts in them.

In: the examples.  Out: a header and rows, for `generate.py`.
"""

from __future__ import annotations

import ast
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from warpsmith.compiler.tile.programs import explain_tile, run_tile
from warpsmith.simt.core.results import Counters
from warpsmith.tile.files import load_kernel
from warpsmith.tile.program import Kernel

__all__ = ["kernels", "staged_tiles", "variants"]

Row = Sequence[str]
Table = tuple[Row, list[Row]]

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "tile"
_SCALARS = {"vector_add": {"n": 5000}}


def _counters(kernel: Kernel) -> Counters:
    """What a run on random arrays costs.  SystemExit where the simulator finds anything wrong."""
    result = run_tile(kernel, _SCALARS.get(kernel.name))
    if not result.ok or result.counters is None:
        raise SystemExit(f"{kernel.name}: {[*result.mismatches.values(), *map(str, result.findings)]}")
    return result.counters


def _dims(dims: tuple[int, ...]) -> str:
    return " x ".join(str(extent) for extent in dims if extent > 1) or "1"


def kernels() -> Table:
    """Each example: what it computes, and its price."""
    rows: list[Row] = []
    for path in sorted(EXAMPLES.glob("*.py")):
        kernel = load_kernel(str(path))
        counted = _counters(kernel)
        says = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        rows.append(
            [
                f"`{path.stem}`",
                " ".join(says.partition("\n\n")[0].split()),
                f"{_dims(kernel.launch.grid)} of {_dims(kernel.launch.block)}",
                str(counted.warp_instructions),
                str(counted.conflicts),
                f"{counted.sectors} ({counted.ideal_sectors})",
                str(counted.barriers),
            ]
        )
    header = ["kernel", "what it does", "blocks", "instructions", "bank conflicts", "sectors (least)", "waits"]
    return header, rows


def variants() -> Table:
    """Which examples use which variant."""
    found: dict[str, dict[str, None]] = {}
    for path in sorted(EXAMPLES.glob("*.py")):
        for choice in explain_tile(load_kernel(str(path))):
            found.setdefault(choice.variant, {}).setdefault(f"`{path.stem}`")
    return ["variant", "used by"], [[f"`{name}`", ", ".join(users)] for name, users in sorted(found.items())]


_STAGED = (
    ("transpose", "swizzled", "dense", "TileLayout(S[32, 32])"),
    ("transpose", "swizzled", "rows of 33", "TileLayout(S[(32, 32) : (33, 1)])"),
    ("transpose", "swizzled", "swizzled", ""),
    ("square_root", "swizzled", "dense", "TileLayout(S[(4, 32, 8) : (256, 8, 1)])"),
    ("square_root", "swizzled", "swizzled", ""),
    ("root_mean_square", "swizzled", "dense", "TileLayout(S[128, 16])"),
    ("root_mean_square", "swizzled", "rows of 20", "TileLayout(S[(128, 16) : (20, 1)])"),
    ("root_mean_square", "swizzled", "swizzled", ""),
    ("gemm", "swizzled_b", "B dense", "TileLayout(S[2, 32, 128])"),
    ("gemm", "swizzled_b", "B swizzled", ""),
)
"""An example, the name of its layout there, the layout in words, and in Python (empty: as it is)."""


def staged_tiles() -> Table:
    """The price of other layouts of the examples' shared tiles."""
    rows: list[Row] = []
    for name, variable, words, layout in _STAGED:
        counted = _counters(_with_layout(EXAMPLES / f"{name}.py", variable, layout))
        rows.append([f"`{name}`", words, str(counted.conflicts), str(counted.shared_bytes)])
    return ["kernel", "shared tile", "bank conflicts", "bytes of shared memory"], rows


def _with_layout(path: Path, variable: str, layout: str) -> Kernel:
    if not layout:
        return load_kernel(str(path))
    text = path.read_text(encoding="utf-8")
    changed, count = re.subn(rf"^{variable} = .*$", f"{variable} = {layout}", text, flags=re.MULTILINE)
    if count != 1:
        raise SystemExit(f"{path.name} has no layout '{variable}'")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        copy.write_text(f"from warpsmith.tile import S, TileLayout\n{changed}", encoding="utf-8")
        return load_kernel(str(copy))
