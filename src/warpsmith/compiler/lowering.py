"""One fusion to LLVM IR: emission, then the passes of its target.

In: a fusion, a device.  Out: `LoweredKernel`.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

from warpsmith.backends.cpu import lowering as cpu
from warpsmith.backends.nvptx import lowering as nvptx
from warpsmith.devices import Device
from warpsmith.emitters import EmittedKernel, emit
from warpsmith.hlo.module import HloInstruction
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.dialects import func
from warpsmith.passes.vectorize_cpu import STREAMS

__all__ = ["LoweredKernel", "architecture", "lower_fusion"]


@dataclass(slots=True)
class LoweredKernel:
    """One kernel after lowering: LLVM IR, and the facts that emission and passes gave.  The IR in `emitted` is gone.

    `streams`: some outputs are written past the caches.

    `emitted_text`, `lowered_text`, `steps` (the IR after each pass) and `step_ops` (how many ops there are, as emitted
    and after each pass) are there when they were asked to be kept.
    """

    emitted: EmittedKernel
    llvm: str
    table_bytes: tuple[int, ...]
    streams: bool
    seconds: dict[str, float]
    pass_seconds: list[tuple[str, float]]
    emitted_text: str = ""
    lowered_text: str = ""
    steps: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    step_ops: list[int] = field(default_factory=list[int])


def architecture(target: Device) -> str:
    """The sm_ name that LLVM and ptxas know a GPU by."""
    major, minor = target.compute_capability
    return f"sm_{major}{minor}"


def lower_fusion(
    fusion: HloInstruction,
    target: Device,
    *,
    numerics: str = "strict",
    name: str = "main",
    keep: bool = False,
    generic: bool = False,
) -> LoweredKernel:
    """Emit a fusion and lower it to LLVM IR.  `keep` records the IR's text after emission and after each pass."""
    with _collection_paused():
        return _lowered(fusion, target, numerics, name, keep, generic)


@contextmanager
def _collection_paused() -> Generator[None]:
    """IR is full of cycles, lives long and dies all at once: looking for garbage in it meanwhile doubles the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _lowered(
    fusion: HloInstruction, target: Device, numerics: str, name: str, keep: bool, generic: bool
) -> LoweredKernel:
    start = perf_counter()
    kernel = emit(fusion, target, numerics=numerics, name=name)
    module = kernel.module
    entry = func.entry(module)
    emitted_seconds = perf_counter() - start
    steps: list[tuple[str, str]] = []
    step_ops: list[int] = []
    emitted_text = ""
    hook = None
    if keep:
        emitted_text = _print(module, generic)
        step_ops.append(_ops(module))

        def record(_index: int, name: str, module: Operation) -> None:
            steps.append((name, _print(module, generic)))
            step_ops.append(_ops(module))

        hook = record
    if target.is_gpu:
        timings = nvptx.lower(module, hook)
        text = nvptx.llvm_ir(module)
    else:
        timings = cpu.lower(module, hook, bytes_moved=kernel.bytes_moved)
        text = cpu.llvm_ir(module)
    total = perf_counter() - start
    tables = entry.attributes.get("warpsmith.tables")
    streams = STREAMS in entry.attributes
    # An executable keeps the facts for as long as it lives, and needs no IR.
    module.regions.clear()
    return LoweredKernel(
        emitted=kernel,
        llvm=text,
        table_bytes=tables.values if isinstance(tables, at.DenseArrayAttr) else (),
        streams=streams,
        seconds={"emit": emitted_seconds, "passes": total - emitted_seconds},
        pass_seconds=[(t.name, t.seconds) for t in timings],
        emitted_text=emitted_text,
        lowered_text=steps[-1][1] if steps else "",
        steps=steps,
        step_ops=step_ops,
    )


def _ops(module: Operation) -> int:
    return sum(1 for _ in module.walk())


def _print(module: Operation, generic: bool) -> str:
    from warpsmith.ir.text.printer import print_op  # text is asked for only by dumps and traces

    return print_op(module, generic=generic)
