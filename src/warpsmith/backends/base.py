"""What every back end is: passes in order, texts of its stages, code that is loaded and launched.

In: a `Kernel`, which emitters or tile dispatch gave.  Out: `Lowered`, made once and shared by whoever asks for a text,
for code, or for a run.  A new target is a folder here with a `Backend`, and a line in `backends/__init__.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Generic, Literal, Protocol, TypeVar

import numpy as np

from warpsmith.arrays import Array
from warpsmith.devices import Device
from warpsmith.errors import ToolMissing
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.dialects import func
from warpsmith.ir.text.printer import print_op
from warpsmith.kernel import Kernel
from warpsmith.passes.manager import Option, PassCall, PassTiming, run_pipeline
from warpsmith.passes.support.edits import Edit, edited
from warpsmith.passes.support.entry_attributes import SIZES, STREAMS

if TYPE_CHECKING:
    from warpsmith.simt.core.checks import Checks
    from warpsmith.simt.core.results import LaunchResult

__all__ = ["Backend", "Buffers", "Hook", "Keep", "Launched", "Lowered", "Store", "pass_calls"]

Origin = TypeVar("Origin", covariant=True)
Code = TypeVar("Code")

Hook = Callable[[int, str, Operation], None]
"""Sees the number of a pass, its name, and the module after it."""

Keep = Literal["facts", "ir", "steps"]
"""What a `Lowered` holds on to: its facts, the lowered IR as well, or the text of the IR after each pass as well."""

Buffers = Sequence["Array | np.generic | None"]
"""One item for each argument of a kernel, flat and in memory order; None for an output that holds nothing before."""

Launched = tuple[list[Array], "LaunchResult | None"]
"""The outputs, flat and in memory order; what was seen, if that was asked for."""


@dataclass(slots=True)
class Lowered(Generic[Origin]):
    """A kernel after its passes: the text that the last of them leads to, and the facts that they gave.

    `emitted` is its IR as it came; `module` the IR after all passes, where that is kept (`Keep`), `code` LLVM IR or
    another back end's text.  `table_bytes` are lookup tables', `sizes` the arguments whose numbers of elements are more
    arguments; `streams`: some outputs are written past the caches.  Texts are in MLIR's generic form if `generic`.
    `steps` (the IR after each pass) and `step_ops` (how many ops there are, as emitted and after each pass) are there
    when they were asked to be kept.
    """

    kernel: Kernel[Origin]
    calls: tuple[PassCall, ...]
    emitted: Operation
    module: Operation | None
    code: str
    table_bytes: tuple[int, ...]
    sizes: tuple[int, ...]
    streams: bool
    seconds: float
    pass_seconds: list[tuple[str, float]]
    emission_seconds: float = 0.0
    generic: bool = False
    steps: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    step_ops: list[int] = field(default_factory=list[int])

    def emitted_text(self) -> str:
        """The IR before any pass."""
        return print_op(self.emitted, generic=self.generic)

    def lowered_text(self) -> str:
        """The IR after all passes.  Where it wasn't kept, the passes run once more on what was emitted: IR takes a
        kilobyte an op, and few ask."""
        if self.module is None:
            self.module = self.emitted.clone()
            run_pipeline(self.module, self.calls)
        return print_op(self.module, generic=self.generic)


class Store(Protocol):
    """Where code for CPUs is kept between processes."""

    def key(self, kind: str, text: str) -> str:
        """What the code of a text is kept under; empty where nothing is kept."""
        ...

    def get(self, key: str) -> bytes | None:
        """What was kept, if it is there."""
        ...

    def put(self, key: str, payload: bytes, /) -> None:
        """Keep something."""
        ...


class Backend(ABC, Generic[Code]):
    """A target's way from a kernel to code.  `stages` are the texts that it has, from the emitted IR on."""

    name: str
    stages: tuple[str, ...]
    driver = ""
    """Whose run time launches its code, where that isn't this process."""

    def __init__(self, device: Device) -> None:
        self.device = device

    @abstractmethod
    def pipeline(self, kernel: Kernel[object]) -> tuple[PassCall, ...]:
        """The passes that take a kernel to the back end's code, with their options."""

    @abstractmethod
    def code(self, module: Operation) -> str:
        """The text of IR after all passes, LLVM's for most."""

    def lower(
        self,
        kernel: Kernel[Origin],
        *,
        keep: Keep = "facts",
        generic: bool = False,
        on_after: Hook | None = None,
        edits: Sequence[Edit] = (),
    ) -> Lowered[Origin]:
        """Run the passes on a kernel's module, in place; `on_after` sees each step.  LoweringError says what fails.

        `edits` change which passes run; UnknownPass for a place that the pipeline doesn't have.
        """
        start = perf_counter()
        module = kernel.module
        entry = func.entry(module)
        name = entry.attributes["sym_name"]
        emitted = module.clone()
        calls = edited(self.pipeline(kernel), edits)
        steps: list[tuple[str, str]] = []
        step_ops = [_ops(module)] if keep == "steps" else []

        def record(index: int, name: str, module: Operation) -> None:
            if keep == "steps":
                steps.append((name, print_op(module, generic=generic)))
                step_ops.append(_ops(module))
            if on_after is not None:
                on_after(index, name, module)

        timings = self.run(module, calls, record)
        code = self.code(module)
        final = next((op for op in module.body if op.attributes.get("sym_name") == name), entry)
        streams = STREAMS in entry.attributes
        kept = module
        if keep == "facts" and on_after is None:  # whoever keeps the kernel keeps facts, and needs no IR
            module.regions.clear()
            kept = None
        return Lowered(
            kernel,
            calls,
            emitted,
            kept,
            code,
            table_bytes=_numbers(entry, "warpsmith.tables"),
            sizes=_numbers(final, SIZES),
            streams=streams,
            seconds=perf_counter() - start,
            pass_seconds=[(each.name, each.seconds) for each in timings],
            generic=generic,
            steps=steps,
            step_ops=step_ops,
        )

    def run(self, module: Operation, calls: Sequence[PassCall], on_after: Hook) -> list[PassTiming]:
        """Run the passes."""
        return run_pipeline(module, calls, on_after=on_after)

    @abstractmethod
    def text(self, lowered: Lowered[object], stage: str, code: Code) -> str:
        """The text of one of the stages that come after `Lowered.code`.  ToolMissing where that takes a tool."""

    @abstractmethod
    def load(self, kernels: Iterable[Lowered[object]], *, expected: int = 1, store: Store | None = None) -> list[Code]:
        """The code of each kernel, compiled in other processes when there is much to do (so many are `expected`) while
        the caller still lowers more of them.  LoweringError where LLVM can't compile one."""

    def no_driver(self) -> ToolMissing:
        """Why code for a GPU doesn't run."""
        return ToolMissing(
            f"no {self.driver} driver is used yet: {self.device.title} code can be printed, not run",
            help='run it on the CPU (target="cpu")',
        )

    @abstractmethod
    def launch(self, lowered: Lowered[object], code: Code, buffers: Buffers, watch: Checks | None = None) -> Launched:
        """Run a kernel.  Buffers that are given aren't changed.  What can't watch leaves `watch` unused."""


def pass_calls(names: Iterable[str], **options: Mapping[str, Option]) -> tuple[PassCall, ...]:
    """Passes with their options, by name (`expand_math={"fma": True}`)."""
    return tuple(PassCall(name, options.get(name.replace("-", "_"), {})) for name in names)


def _numbers(entry: Operation, name: str) -> tuple[int, ...]:
    found = entry.attributes.get(name)
    return tuple(found.values) if isinstance(found, at.DenseArrayAttr) else ()


def _ops(module: Operation) -> int:
    return sum(1 for _ in module.walk())
