"""The driver for tile programs: a kernel in, the text of a stage or the arrays of a run out.

    tirx         the kernel as it was read           dispatched   after each primitive got its lowering
    lowered      IR of buffers and arithmetic        cuda         CUDA C++        ptx, cubin   for one architecture

`run_tile` runs the dispatched kernel in the simulator, every access watched, or as native code of this computer or of a
GPU (`launches`), and the undispatched one by the meaning of its primitives (`reference/`), and compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.devices import Device, device
from warpsmith.errors import CheckFailed, UsageError, did_you_mean
from warpsmith.numerics.compare import Tolerance, compare
from warpsmith.numerics.spread import Spread
from warpsmith.numerics.ulp import UNCOMPARABLE
from warpsmith.tile.dispatch import Choice, Dispatched, dispatch
from warpsmith.tile.model.dtypes import of_numpy
from warpsmith.tile.program import Kernel

if TYPE_CHECKING:
    from warpsmith.compiler.tile.arguments import Bound
    from warpsmith.compiler.tile.launches import TileExecutable
    from warpsmith.simt.core.results import Counters, Finding

__all__ = [
    "DEFAULT_STAGE",
    "PLATFORMS",
    "STAGES",
    "TileRun",
    "dispatched_tile",
    "explain_tile",
    "run_tile",
    "tile_bytes",
    "tile_text",
]


STAGES = ("tirx", "dispatched", "lowered", "cuda", "ptx", "cubin")
DEFAULT_STAGE = "dispatched"
PLATFORMS = ("sim", "cpu", "cuda")


def _gpu(target: str) -> Device:
    found = device(target)
    if not found.is_nvidia:
        has = f"{found.title} isn't one that its variants are for" if found.is_gpu else f"{target} has none"
        raise UsageError(f"a tile program runs on a GPU's threads, and {has}", help="such as sm_90")
    return found


def tile_text(kernel: Kernel, stage: str, target: str = "sm_90", *, generic: bool = False) -> str:
    """The text of a stage.  Raises DispatchFailed, LoweringError, and UsageError for another stage."""
    if stage not in STAGES:
        raise UsageError(
            f"a tile program has no stage '{stage}'",
            help=did_you_mean(stage, STAGES) or f"its stages: {', '.join(STAGES)}",
        )
    if stage == "cubin":
        raise UsageError("a cubin is binary", help="write it to a file: -o OUT.cubin")
    if stage == "tirx":
        from warpsmith.tile.printers.kernel_text import tirx_text

        return tirx_text(kernel)
    chosen = _gpu(target)
    dispatched = dispatch(kernel, chosen)
    if stage == "dispatched":
        from warpsmith.tile.printers.kernel_text import dispatched_text

        return dispatched_text(dispatched)
    if stage == "ptx":
        return _ptx(dispatched, chosen)
    if stage == "cuda":
        from warpsmith.backends.cuda_cpp.backend import CudaCpp

        backend = CudaCpp(chosen)
        return backend.source([backend.lower(dispatched, keep="ir")])
    from warpsmith.backends.simulator.backend import Simulator

    return Simulator(chosen, "buffers").lower(dispatched, generic=generic).lowered_text()


def tile_bytes(kernel: Kernel, target: str = "sm_90") -> bytes:
    """The cubin.  Raises ToolMissing without ptxas."""
    from warpsmith.backends.nvptx import ptxas

    chosen = _gpu(target)
    return ptxas.assemble(_ptx(dispatch(kernel, chosen), chosen), chosen.architecture).data


def _ptx(dispatched: Dispatched, target: Device) -> str:
    from warpsmith.backends.nvptx.backend import Nvptx

    backend = Nvptx(target)
    return backend.load([backend.lower(dispatched)])[0]


def dispatched_tile(kernel: Kernel, target: str = "sm_90") -> Dispatched:
    """A kernel below its primitives: the choices made, and the shared memory that a block takes."""
    return dispatch(kernel, _gpu(target))


def explain_tile(kernel: Kernel, target: str = "sm_90") -> tuple[Choice, ...]:
    """Which variant each primitive got, its partition, and why others didn't take it."""
    return dispatched_tile(kernel, target).origin.choices


@dataclass(frozen=True, slots=True)
class TileRun:
    """A run.  `outputs` are the buffers that the kernel writes, by parameter; `findings` what the checks saw;
    `mismatches` the outputs in which the dispatched kernel and the meaning of its primitives differ, with how much."""

    outputs: Mapping[str, Array]
    reference: Mapping[str, Array]
    findings: Sequence[Finding]
    counters: Counters | None
    mismatches: Mapping[str, str] = field(default_factory=dict[str, str])
    platform: str = "sim"

    @property
    def ok(self) -> bool:
        """Whether nothing was found and every buffer agrees."""
        return not self.findings and not self.mismatches


def run_tile(
    kernel: Kernel,
    arrays: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    target: str = "sm_90",
    platform: str = "sim",
    seed: int = 0,
    blocks: int | None = None,
) -> TileRun:
    """Run a kernel on arrays by parameter (or in order); what isn't given is random, or zero where it is only written.

    On cpu and cuda nothing is watched, so the meaning of the primitives comes first, in which every index is checked:
    native code runs only where that found nothing.  ArgumentMismatch for arrays that don't fit, UsageError for another
    platform; LoweringError for what a CPU has no form of, ToolMissing without a CUDA driver.
    """
    if platform not in PLATFORMS:
        raise UsageError(
            f"a tile program can't run on platform '{platform}'",
            help=did_you_mean(platform, PLATFORMS) or f"platforms: {', '.join(PLATFORMS)}",
        )
    from warpsmith.compiler.tile.arguments import bind_arguments
    from warpsmith.compiler.tile.launches import TileExecutable, backend_for
    from warpsmith.reference.program import run_reference  # printing a stage needs no simulator
    from warpsmith.simt.core.results import Finding

    chosen = _gpu(target)
    dispatched = dispatch(kernel, chosen)
    bound = bind_arguments(dispatched, arrays, seed)
    executable = TileExecutable(dispatched, backend_for(platform, chosen))
    outputs: dict[str, Array] | None = None
    findings, counters = list[Finding](), None
    if platform == "sim":
        outputs, findings, counters = _watched(executable, bound, chosen, blocks)
    try:
        reference = run_reference(kernel, bound.buffers, bound.scalars)
    except CheckFailed as failed:  # an index that is in the memory, but not in its dim
        reference = {}
        findings += [failed.finding] if isinstance(failed.finding, Finding) else []
    if platform != "sim" and not findings:
        outputs = executable.run(bound)[0]
    expected = {name: reference[name] for name in bound.written if name in reference}
    found = {name: outputs[name] for name in bound.written} if outputs is not None else {}
    differences = _differences(found, expected, {})
    if differences:
        differences = _differences(found, expected, _spread(kernel, bound, expected))
    return TileRun(found, expected, findings, counters, differences, platform)


def _spread(kernel: Kernel, bound: Bound, expected: Mapping[str, Array]) -> dict[str, Array]:
    """How far rounding alone moves each element: what runs of the reference that round at random differ by."""
    from warpsmith.reference.primitives import rounding_at_random
    from warpsmith.reference.program import run_reference

    spreads = {name: Spread(array.astype(np.float64)) for name, array in expected.items()}
    for seed in range(_ROUNDINGS):
        try:
            with rounding_at_random(seed):
                again = run_reference(kernel, bound.buffers, bound.scalars)
        except CheckFailed:
            continue  # threads that had one value, or one index, may have several now
        for name, spread in spreads.items():
            with np.errstate(all="ignore"):
                spread.add(again[name].astype(np.float64))
    return {name: spread.largest for name, spread in spreads.items()}


def _watched(
    executable: TileExecutable, bound: Bound, target: Device, blocks: int | None
) -> tuple[dict[str, Array] | None, list[Finding], Counters | None]:
    """The buffers after the kernel (None where it ended early), what the checks saw, and what it costs."""
    from warpsmith.simt.core.checks import Checks
    from warpsmith.simt.core.results import Finding

    try:
        outputs, seen = executable.run(bound, Checks(device=target, blocks=blocks))
    except CheckFailed as failed:
        if not isinstance(failed.finding, Finding):
            raise
        return None, [failed.finding], None
    assert seen is not None
    return outputs, list(seen.findings), seen.counters


_ULPS = 8
"""How far approximations (exp, tanh...) of the two may be apart, in units of the last place of the output's type."""
_ROUNDINGS = 8  # runs of the reference that round at random
_SPREADS = 16  # a sum in another order differs by so many times what they do, at most


def _differences(
    found: Mapping[str, Array], expected: Mapping[str, Array], spread: Mapping[str, Array]
) -> dict[str, str]:
    """What differs by more than `_ULPS` and, where given, more than rounding explains."""
    result: dict[str, str] = {}
    for name, wanted in expected.items():
        if name not in found:
            continue
        seen = compare(found[name], wanted, Tolerance(absolute=_limits(wanted, spread.get(name, 0.0))))
        if not seen.match:
            ulps = "NaN against a number" if seen.max_ulp == UNCOMPARABLE else f"by {seen.max_ulp} ulp at most"
            worst = "" if wanted.dtype.kind in "iub" else f", {ulps}"
            result[name] = (
                f"{seen.mismatches} of {seen.elements} elements differ{worst}; the worst at {seen.worst}: "
                f"{seen.actual} instead of {seen.expected}"
            )
    return result


def _limits(wanted: Array, spread: float | Array) -> Array:
    """How far from `wanted` a right element may be."""
    if wanted.dtype.kind in "iub":
        return np.zeros(wanted.shape)
    type = of_numpy(wanted.dtype)
    with np.errstate(all="ignore"):
        size = np.abs(wanted.astype(np.float64))
        approximate = _ULPS * type.epsilon * np.maximum(size, type.smallest_normal)
    return np.maximum(np.where(np.isfinite(size), approximate, 0.0), _SPREADS * spread)
