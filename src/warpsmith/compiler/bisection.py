"""Which pass broke a result: a kernel's IR after each pass, run on the same inputs.

In: a module, a target, inputs.  Out: a `Bisection`.  Each kernel gets the values that the reference interpreter gives
its operands.  It is run in the simulator as emitted and after every pass that changed its IR, and at last as PTX or
machine code.  A step is to blame when its result isn't what its contract allows (the same bits as before it, or, for
passes that expand functions, a value within the reference's bound), when an access goes wrong that went right before,
when it raises, or when it leaves IR that doesn't verify.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.backends.cpu import lowering as cpu
from warpsmith.backends.nvptx import lowering as nvptx
from warpsmith.backends.nvptx.codegen import ptx_from_llvm
from warpsmith.compiler.driver import compile, scheduled
from warpsmith.compiler.lowering import architecture
from warpsmith.devices import Device, device
from warpsmith.emitters import EmittedKernel, emit
from warpsmith.emitters.kernel.types import scalar_type
from warpsmith.errors import SimulationError, WarpsmithError
from warpsmith.hlo.edit import extract
from warpsmith.hlo.evaluator import Value, evaluate, evaluate_with_bounds, within_bounds
from warpsmith.hlo.evaluator.interpreter import arguments_of
from warpsmith.hlo.module import HloInstruction, HloModule
from warpsmith.ir.core.ssa import Operation, Trait
from warpsmith.ir.core.types import numpy_dtype
from warpsmith.ir.core.verifier import verify
from warpsmith.ir.text.printer import print_module
from warpsmith.kernel import Argument
from warpsmith.numerics.bounds import bound
from warpsmith.numerics.modes import mode
from warpsmith.passes.manager import lookup
from warpsmith.records import Record
from warpsmith.simt.core.checks import Checks
from warpsmith.simt.core.results import Finding
from warpsmith.simt.ir.launch import run_kernel, watch_kernel
from warpsmith.simt.ptx.launch import PtxLaunch, simulate_ptx

__all__ = ["Bisection", "Culprit", "Difference", "bisect"]

EMISSION = "emission"
"""What the emitter made, before any pass: compared with the reference itself."""

_MOST_EXAMPLES = 5
_CODE = {True: "PTX", False: "machine code"}


@dataclass(frozen=True, slots=True)
class Difference:
    """One element that a step changed; values as text."""

    output: int
    index: tuple[int, ...]
    before: str
    after: str
    reference: str


@dataclass(frozen=True, slots=True)
class Culprit:
    """The first step that broke its contract.

    `what` is "values", "access" (the simulator's checks), "raised" or "invalid IR".  `diff` is the step's change of the
    IR as a unified diff (empty for emission and for the last step, code generation).
    """

    kernel: str
    index: int
    step: str
    contract: str
    what: str
    message: str
    wrong: int = 0
    elements: int = 0
    examples: tuple[Difference, ...] = ()
    diff: str = ""


@dataclass(frozen=True, slots=True)
class Bisection(Record):
    """What was run, and the first culprit; `steps` is (kernel, steps that changed its IR and ran)."""

    module: str
    target: str
    steps: tuple[tuple[str, int], ...]
    culprit: Culprit | None

    def to_dict(self) -> dict[str, Any]:
        """Plain data: module, target, steps, and the culprit or None."""
        steps = [{"kernel": name, "ran": count} for name, count in self.steps]
        return {**Record.to_dict(self), "steps": steps}


class _Found(Exception):
    """A culprit, on its way out of the passes."""

    def __init__(self, culprit: Culprit) -> None:
        super().__init__(culprit.message)
        self.culprit = culprit


def bisect(module: HloModule, *arrays: Any, target: str = "sm_90", numerics: str = "strict") -> Bisection:
    """Run every kernel of `module` after each pass on the values that `arrays` lead to.

    Raises what `compile` raises before there is IR (UnknownTarget, InvalidHlo, UnsupportedFusion), and what `evaluate`
    raises.
    """
    mode(numerics)
    chosen = device(target)
    wrapped, schedule = scheduled(module, chosen)
    fusions = list(dict.fromkeys(schedule.kernel_fusions()))
    known = _operand_values(wrapped, fusions, arrays)
    steps: list[tuple[str, int]] = []
    for fusion in fusions:
        if all(operand in known for operand in fusion.operands):
            check = _KernelCheck(wrapped, fusion, [known[operand] for operand in fusion.operands], chosen, numerics)
            try:
                check.run()
            except _Found as found:
                steps.append((fusion.name, check.ran))
                return Bisection(module.name, target, tuple(steps), found.culprit)
            steps.append((fusion.name, check.ran))
    return Bisection(module.name, target, tuple(steps), None)


def _operand_values(
    module: HloModule, fusions: Sequence[HloInstruction], arrays: Sequence[Any]
) -> dict[HloInstruction, Array]:
    """What the reference interpreter gives to the kernels' operands, the first time that each is computed.

    An operand that is never computed (of a branch not taken) is missing.
    """
    wanted = {operand for fusion in fusions for operand in fusion.operands}
    given = zip(module.entry.parameters, arguments_of(module.entry, arrays), strict=True)
    found: dict[HloInstruction, Array] = {
        parameter: value for parameter, value in given if parameter in wanted and not isinstance(value, tuple)
    }

    def record(instruction: HloInstruction, value: Value) -> None:
        if instruction in wanted and instruction not in found and not isinstance(value, tuple):
            found[instruction] = np.array(value)

    evaluate(module, *arrays, trace=record)
    return found


class _KernelCheck:
    """One kernel, step by step."""

    def __init__(
        self, module: HloModule, fusion: HloInstruction, inputs: Sequence[Array], target: Device, numerics: str
    ) -> None:
        self.fusion, self.target, self.numerics = fusion, target, numerics
        self.alone = extract(module, fusion)
        unique = dict(zip(fusion.operands, inputs, strict=True))
        self.arguments = list(unique.values())
        self.inputs = inputs
        self.expected, self.bounds = evaluate_with_bounds(self.alone, *self.arguments, op_ulp_bound=bound)
        self.passes = nvptx.PASSES if target.is_gpu else cpu.PASSES
        self.ran = 0
        self.index = 0
        self.text = ""
        self.results: list[Array] = []

    def run(self) -> None:
        """Raises `_Found`."""
        kernel = emit(self.fusion, self.target, numerics=self.numerics)
        self.bytes_moved = kernel.bytes_moved
        self._start(kernel)
        try:
            self._lower(kernel.module, lambda index, name, module: self._after(index, name, module, kernel))
        except WarpsmithError as error:
            raise self._raised(error) from error
        self._code(kernel)

    def _start(self, kernel: EmittedKernel) -> None:
        self._verified(kernel.module, EMISSION, "")
        self.text = print_module(kernel.module)
        self.inexact = _inexact(kernel.module)
        self.results = self._simulated(kernel, EMISSION, "")
        self._within(self.results, self.expected, EMISSION, "the reference interpreter's values", "")

    def _lower(self, module: Operation, after: Callable[[int, str, Operation], None]) -> None:
        if self.target.is_gpu:
            nvptx.lower(module, after)
        else:
            cpu.lower(module, after, bytes_moved=self.bytes_moved)

    def _after(self, index: int, name: str, module: Operation, kernel: EmittedKernel) -> None:
        before, self.text = self.text, print_module(module)
        inexact, self.inexact = self.inexact, _inexact(module)
        self.index = index
        if self.text != before:
            diff = _diff(before, self.text, name)
            self._verified(module, name, diff)
            results = self._simulated(kernel, name, diff)
            if lookup(name).contract == "bit-exact" or not inexact:
                self._same(results, name, diff)
            else:
                self._within(results, self.results, name, lookup(name).contract, diff)
            self.results = results
        self.index = index + 1

    def _code(self, kernel: EmittedKernel) -> None:
        """The last step: what LLVM makes of the lowered IR."""
        name = _CODE[self.target.is_gpu]
        self.ran += 1
        try:
            results = self._ptx(kernel) if self.target.is_gpu else self._machine_code()
        except SimulationError as error:
            raise _Found(self._culprit(name, "bit-exact", "access", str(error))) from error
        except WarpsmithError as error:
            raise _Found(self._culprit(name, "bit-exact", "raised", str(error))) from error
        if self.inexact:
            self._within(results, self.results, name, "functions within their ulp bounds", "")
        else:
            self._same(results, name, "")

    # ------------------------------------------------------------------------------------------------------- running
    def _simulated(self, kernel: EmittedKernel, step: str, diff: str) -> list[Array]:
        self.ran += 1
        flat = [_reals(each.to_memory(array)) for array, each in zip(self.inputs, kernel.inputs, strict=True)]
        outputs = [(_size(each), numpy_dtype(scalar_type(each.dtype))) for each in kernel.outputs]
        contract = lookup(step).contract if step != EMISSION else ""
        try:
            if self.target.is_gpu:
                found, launch = watch_kernel(kernel.module, flat, outputs, Checks(device=self.target))
                self._no_findings(launch.findings, step, contract, diff)
            else:
                found = run_kernel(kernel.module, flat, outputs)
        except SimulationError as error:
            raise _Found(self._culprit(step, contract, "access", str(error), diff)) from error
        return [made.from_memory(data) for data, made in zip(found, kernel.outputs, strict=True)]

    def _ptx(self, kernel: EmittedKernel) -> list[Array]:
        flat = [each.to_memory(array) for array, each in zip(self.inputs, kernel.inputs, strict=True)]
        wanted = [(each.dtype.numpy, each.elements) for each in kernel.outputs]
        text = ptx_from_llvm(nvptx.llvm_ir(kernel.module), architecture(self.target))
        words = [i for i, each in enumerate(kernel.outputs) if each.whole_words]
        launch = PtxLaunch(kernel.launch.grid, kernel.launch.block, aliases=kernel.aliases, words=words)
        found, stats = simulate_ptx(text, flat, wanted, launch, Checks(device=self.target))
        self._no_findings(stats.findings, _CODE[True], "bit-exact", "")
        return [made.from_memory(data) for data, made in zip(found, kernel.outputs, strict=True)]

    def _machine_code(self) -> list[Array]:
        exe = compile(self.alone, self.target.name, numerics=self.numerics, cache=False)
        return list(exe(*self.arguments))

    # ------------------------------------------------------------------------------------------------------- verdicts
    def _no_findings(self, findings: Sequence[Finding], step: str, contract: str, diff: str) -> None:
        if findings:
            raise _Found(self._culprit(step, contract, "access", str(findings[0]), diff))

    def _verified(self, module: Operation, step: str, diff: str) -> None:
        try:
            verify(module)
        except WarpsmithError as error:
            contract = lookup(step).contract if step != EMISSION else ""
            raise _Found(self._culprit(step, contract, "invalid IR", str(error), diff)) from error

    def _same(self, results: Sequence[Array], step: str, diff: str) -> None:
        good = [
            (_bits(mine) == _bits(theirs)).reshape(mine.size, 1 + (mine.dtype.kind == "c")).all(axis=1)
            for mine, theirs in zip(results, self.results, strict=True)
        ]
        self._all(good, results, self.results, step, "bit-exact", diff)

    def _within(self, results: Sequence[Array], before: Sequence[Array], step: str, contract: str, diff: str) -> None:
        shapes = self.fusion.shape.leaves()
        good = [
            within_bounds(mine, theirs, error, shape.dtype).reshape(-1)
            for mine, theirs, error, shape in zip(results, self.expected, self.bounds, shapes, strict=True)
        ]
        self._all(good, results, before, step, contract, diff)

    def _all(
        self,
        good: Sequence[Array],
        results: Sequence[Array],
        before: Sequence[Array],
        step: str,
        contract: str,
        diff: str,
    ) -> None:
        wrong = sum(int((~each).sum()) for each in good)
        if not wrong:
            return
        elements = sum(each.size for each in good)
        culprit = self._culprit(step, contract, "values", f"{wrong} of {elements} elements changed", diff)
        examples = tuple(self._examples(good, results, before))
        raise _Found(
            Culprit(
                *(culprit.kernel, culprit.index, step, contract, "values", culprit.message),
                wrong=wrong,
                elements=elements,
                examples=examples[:_MOST_EXAMPLES],
                diff=diff,
            )
        )

    def _examples(
        self, good: Sequence[Array], results: Sequence[Array], before: Sequence[Array]
    ) -> Iterator[Difference]:
        for output, right in enumerate(good):
            for flat in np.flatnonzero(~right)[:_MOST_EXAMPLES]:
                at = tuple(int(i) for i in np.unravel_index(int(flat), results[output].shape))
                values = (str(arrays[output][at]) for arrays in (before, results, self.expected))
                yield Difference(output, at, *values)

    def _raised(self, error: WarpsmithError) -> _Found:
        step = self.passes[min(self.index, len(self.passes) - 1)]
        return _Found(self._culprit(step, lookup(step).contract, "raised", str(error)))

    def _culprit(self, step: str, contract: str, what: str, message: str, diff: str = "") -> Culprit:
        return Culprit(self.fusion.name, self.index, step, contract, what, message, diff=diff)


def _inexact(module: Operation) -> bool:
    """Whether a function is left whose expansion may differ from the simulator's own value of it."""
    return any(op.row.has(Trait.INEXACT) for op in module.walk())


def _size(each: Argument) -> int:
    return each.elements * (2 if each.dtype.is_complex else 1)


def _reals(array: Array) -> Array:
    """Complex numbers as pairs of reals, as the IR has them."""
    return array.view(f"f{array.itemsize // 2}") if array.dtype.kind == "c" else array


def _bits(array: Array) -> Array:
    """The bits of each element, flat, all NaN alike (which NaN a NaN is, HLO leaves open); complex: of both parts."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind == "c":
        part = np.dtype(f"f{flat.dtype.itemsize // 2}")
        return _bits(flat.view(part)).reshape(-1, 2)
    if "int4" in flat.dtype.name or "int2" in flat.dtype.name:  # the upper bits of their bytes are open
        return flat.astype(np.int8)
    bits = flat.view(f"u{flat.dtype.itemsize}").copy()
    if flat.dtype.kind not in "biu":
        with np.errstate(all="ignore"):
            bits[np.isnan(flat)] = np.iinfo(bits.dtype).max
    return bits


def _diff(before: str, after: str, step: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"before {step}", f"after {step}", lineterm=""
    )
    return "\n".join(lines)
