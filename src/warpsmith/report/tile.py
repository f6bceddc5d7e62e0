"""Tile programs from Python: `ws.tile.run`, `compile` and `explain`, which the command `tile` calls too.

In: a kernel (`ws.tile.load`, or one under `@T.prim_func`), arrays, a target.  Out: a `TileReport`, which prints as the
command does; a `TileProgram`, whose stages are text and which can be called; a `TileExplanation`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from warpsmith.arrays import Array
from warpsmith.compiler.tile.programs import DEFAULT_STAGE
from warpsmith.errors import UsageError
from warpsmith.records import Record, plain
from warpsmith.report.explain.tile import TileExplanation, tile_explanation
from warpsmith.tile.program import JitKernel, Kernel

if TYPE_CHECKING:
    from warpsmith.compiler.tile.launches import TileExecutable
    from warpsmith.simt.core.results import Counters, Finding

__all__ = ["STAGE", "TARGET", "TileProgram", "TileReport", "artifact", "compile", "explain", "run"]

STAGE = DEFAULT_STAGE
TARGET = "sm_90"

Arrays = Mapping[str, Any] | Sequence[Any]
AnyKernel = Kernel | JitKernel


def _kernel(kernel: AnyKernel) -> Kernel:
    """A kernel whose constants are all given.  TileSyntaxError where some aren't, UsageError for what is no kernel."""
    known: object = kernel.specialize() if isinstance(kernel, JitKernel) else kernel
    if not isinstance(known, Kernel):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(
            f"a tile kernel is asked for, not {type(known).__name__}",
            help="ws.tile.load(place) gives the kernel of a file; decorate a function with @T.prim_func or @T.jit",
        )
    return known


@dataclass(frozen=True, slots=True)
class TileReport(Record):
    """A run of a kernel.

    `outputs`: the buffers that it writes, by parameter, new arrays.  `findings`: what the checks saw.  `mismatches`:
    the outputs that differ from what the primitives mean, with how much.  `counters`: what the simulator counted.
    """

    kernel: Kernel
    target: str
    platform: str
    outputs: Mapping[str, Array]
    findings: Sequence[Finding]
    mismatches: Mapping[str, str]
    counters: Counters | None

    @property
    def match(self) -> bool:
        """Whether every output is as the primitives mean."""
        return not self.mismatches

    @property
    def ok(self) -> bool:
        """Whether nothing was found, too."""
        return self.match and not self.findings

    def __str__(self) -> str:
        launch = self.kernel.launch
        lines = [f"kernel {self.kernel.name}: grid {launch.grid}, block {launch.block}, platform {self.platform}"]
        for name, array in self.outputs.items():
            verdict = self.mismatches.get(name, "as its primitives mean")
            lines.append(f"  {name} {array.dtype}{list(array.shape)}: {verdict}")
        if self.counters is not None:
            counted = self.counters
            lines.append(
                f"  {counted.warp_instructions} warp instructions, {counted.conflicts} bank conflicts, "
                f"{counted.sectors} sectors of global memory ({counted.ideal_sectors} at least), "
                f"{counted.barriers} barrier waits"
                + (f", {counted.matrix_flops} operations of the matrix units" if counted.matrix_flops else "")
            )
        lines += map(str, self.findings)
        if self.findings:
            lines.append(f"{len(self.findings)} finding(s)")
        elif self.platform == "sim":
            lines.append("no findings")
        else:
            lines.append("not watched: races and the like are found by --platform sim")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, without the outputs' elements: what `--json` writes."""
        return plain(
            {
                "kernel": self.kernel.name,
                "platform": self.platform,
                "target": self.target,
                "grid": self.kernel.launch.grid,
                "block": self.kernel.launch.block,
                "match": self.match,
                "outputs": {
                    name: {"dtype": str(array.dtype), "shape": array.shape, "mismatch": self.mismatches.get(name)}
                    for name, array in self.outputs.items()
                },
                "findings": [str(finding) for finding in self.findings],
                "counters": None if self.counters is None else self.counters.to_dict(),
            }
        )


def run(
    kernel: AnyKernel, arrays: Arrays | None = None, *, platform: str = "sim", seed: int = 0, target: str = TARGET
) -> TileReport:
    """Run a kernel, and compare it with what its primitives mean.

    arrays: by parameter (`A_ptr`, or `A` for short), or in the order of the kernel's parameters that are buffers.
        Shapes and dtypes are the kernel's; symbolic extents are taken from them.  They are only read: outputs are
        copies.  What isn't given is random by `seed`.
    platform: "sim", the simulator, every access watched; "cpu", native code; "cuda", this computer's first GPU.
    target: the GPU that primitives are dispatched for.

    ArgumentMismatch for arrays that don't fit, UsageError for another platform or target, DispatchFailed where no
    lowering takes a primitive, LoweringError for what a CPU has no form of, ToolMissing without a CUDA driver.
    """
    from warpsmith.compiler.tile.programs import run_tile

    known = _kernel(kernel)
    found = run_tile(known, arrays, target=target, platform=platform, seed=seed)
    return TileReport(known, target, platform, found.outputs, found.findings, found.mismatches, found.counters)


@dataclass(slots=True, repr=False)
class TileProgram:
    """A kernel for a target.  `artifact` gives its stages; called, it runs where this computer can."""

    kernel: Kernel
    target: str
    _made: dict[str, str | bytes] = field(default_factory=dict[str, str | bytes])
    _native: TileExecutable | None = None

    def __repr__(self) -> str:
        return f"<kernel {self.kernel.name} for {self.target}>"

    def artifact(self, stage: str = STAGE) -> str | bytes:
        """The text of a stage: tirx, dispatched, lowered, cuda or ptx; of cubin the bytes.

        Of a program for the CPU they are those of the GPU that it is dispatched for.  Raises UsageError for another
        stage, ToolMissing for a cubin without ptxas.
        """
        if stage not in self._made:
            self._made[stage] = artifact(self.kernel, stage, TARGET if self.target == "cpu" else self.target)
        return self._made[stage]

    def __call__(self, *arrays: Any, **named: Any) -> dict[str, Array]:
        """The buffers that the kernel writes, by parameter, from arrays in order or by parameter; nothing is checked.

        Arrays are only read.  A buffer that is written and isn't given starts as zeros.  UsageError for a GPU's
        program: `ws.tile.run(kernel, arrays, platform="cuda")` runs it.
        """
        if self._native is None:
            raise UsageError(
                f"a program for {self.target} isn't called on this computer's CPU",
                help='ws.tile.compile(kernel, target="cpu"), or ws.tile.run(kernel, arrays, platform="sim")',
            )
        if arrays and named:
            raise UsageError("arrays are given in order or by parameter, not both")
        return self._native(named or arrays)


def artifact(kernel: Kernel, stage: str = STAGE, target: str = TARGET, *, generic: bool = False) -> str | bytes:
    """One stage of a kernel (`TileProgram.artifact`); with `generic`, IR in MLIR's generic form."""
    from warpsmith.compiler.tile.programs import tile_bytes, tile_text

    return tile_bytes(kernel, target) if stage == "cubin" else tile_text(kernel, stage, target, generic=generic)


def compile(kernel: AnyKernel, target: str = TARGET) -> TileProgram:
    """Compile a kernel for a GPU ("sm_80", "sm_90", "sm_100", or its name), or for this computer's "cpu".

    Raises UsageError for another target, DispatchFailed where no lowering takes a primitive, InvalidTileProgram for
    more threads or memory than there is, LoweringError for what a CPU has no form of.
    """
    from warpsmith.compiler.tile.launches import compile_blocks
    from warpsmith.compiler.tile.programs import dispatched_tile

    known = _kernel(kernel)
    if target == "cpu":
        return TileProgram(known, target, _native=compile_blocks(known))
    dispatched_tile(known, target)
    return TileProgram(known, target)


def explain(kernel: AnyKernel, target: str = TARGET) -> TileExplanation:
    """Which variant each primitive of a kernel got, its partition, and why others didn't take it.

    Raises as `compile` does.
    """
    return tile_explanation(_kernel(kernel), target)
