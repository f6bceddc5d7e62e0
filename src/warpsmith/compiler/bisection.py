"""Which pass broke a result: a kernel's IR after each pass, run on the same inputs.

In: a module, a target, inputs.  Out: a `Bisection`.  Each kernel gets the values that the reference interpreter gives
its operands.  It is run in the simulator as emitted and after every pass that changed its IR, and at last as PTX or
machine code.  A step is to blame when its result isn't what its contract allows (the same bits as before it, or, for
passes that expand functions, a value within the reference's bound), when an access goes wrong that went right before,
when it raises, or when it leaves IR that doesn't verify.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.backends import backend_of
from warpsmith.backends.simulator.launch import run_ir, run_ptx
from warpsmith.compiler.lowering import LoweredKernel, Program, program
from warpsmith.emitters import EmittedKernel
from warpsmith.errors import InvalidIr, SimulationError, WarpsmithError
from warpsmith.hlo.edit import extract
from warpsmith.hlo.evaluator import Value, evaluate, evaluate_with_bounds, within_bounds
from warpsmith.hlo.evaluator.interpreter import arguments_of
from warpsmith.hlo.module import HloInstruction, HloModule
from warpsmith.ir.core.ssa import Operation, Trait
from warpsmith.ir.core.verifier import verify
from warpsmith.ir.text.printer import print_module
from warpsmith.numerics.bounds import bound
from warpsmith.passes.manager import lookup
from warpsmith.passes.support.edits import edited
from warpsmith.records import Record
from warpsmith.simt.core.checks import Checks
from warpsmith.simt.core.results import Finding

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


def bisect(
    module: HloModule, *arrays: Any, target: str = "sm_90", numerics: str = "strict", pipeline: str = ""
) -> Bisection:
    """Run every kernel of `module` after each pass on the values that `arrays` lead to.  `pipeline` is as in `compile`.

    Raises what `compile` raises before there is IR (UnknownTarget, InvalidHlo, UnsupportedFusion), and what `evaluate`
    raises.
    """
    whole = program(module, target, numerics=numerics, pipeline=pipeline)
    fusions = list(dict.fromkeys(whole.schedule.kernel_fusions()))
    known = _operand_values(whole.module, fusions, arrays)
    steps: list[tuple[str, int]] = []
    for fusion in fusions:
        if all(operand in known for operand in fusion.operands):
            check = _KernelCheck(whole, fusion, [known[operand] for operand in fusion.operands])
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

    def __init__(self, whole: Program, fusion: HloInstruction, inputs: Sequence[Array]) -> None:
        self.whole, self.fusion, self.inputs = whole, fusion, inputs
        self.device, self.backend = whole.device, backend_of(whole.device)
        unique = dict(zip(fusion.operands, inputs, strict=True))
        alone = extract(whole.module, fusion)
        self.expected, self.bounds = evaluate_with_bounds(alone, *unique.values(), op_ulp_bound=bound)
        self.ran = 0
        self.index = 0
        self.text = ""
        self.results: list[Array] = []

    def run(self) -> None:
        """Raises `_Found`."""
        kernel = self.whole.emit(self.fusion)
        self._start(kernel)
        try:
            lowered = self.backend.lower(
                kernel, on_after=lambda i, name, module: self._after(i, name, module, kernel), edits=self.whole.edits
            )
        except WarpsmithError as error:
            raise self._raised(error, kernel) from error
        if self.device.is_nvidia or self.device.is_cpu:  # nothing here runs other machine code
            self._code(lowered)

    def _start(self, kernel: EmittedKernel) -> None:
        self._verified(kernel.module, EMISSION, "")
        self.text = print_module(kernel.module)
        self.inexact = _inexact(kernel.module)
        self.results = self._simulated(kernel, EMISSION, "")
        self._within(self.results, self.expected, EMISSION, "the reference interpreter's values", "")

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

    def _code(self, lowered: LoweredKernel) -> None:
        """The last step: what LLVM makes of the lowered IR."""
        name = _CODE[self.device.is_nvidia]
        self.ran += 1
        try:
            results = self._machine_code(lowered, name)
        except SimulationError as error:
            raise _Found(self._culprit(name, "bit-exact", "access", str(error))) from error
        except WarpsmithError as error:
            raise _Found(self._culprit(name, "bit-exact", "raised", str(error))) from error
        if self.inexact:
            self._within(results, self.results, name, "functions within their ulp bounds", "")
        else:
            self._same(results, name, "")

    # ------------------------------------------------------------------------------------------------------- running
    def _buffers(self, kernel: EmittedKernel) -> list[Array | None]:
        flat = [each.to_memory(array) for array, each in zip(self.inputs, kernel.inputs, strict=True)]
        return [*flat, *[None] * len(kernel.outputs)]

    def _simulated(self, kernel: EmittedKernel, step: str, diff: str) -> list[Array]:
        self.ran += 1
        contract = lookup(step).contract if step != EMISSION else ""
        watch = Checks(device=self.device) if self.device.is_gpu else None
        try:
            found, launch = run_ir(kernel, kernel.module, self._buffers(kernel), watch)
        except SimulationError as error:
            raise _Found(self._culprit(step, contract, "access", str(error), diff)) from error
        if launch is not None:
            self._no_findings(launch.findings, step, contract, diff)
        return [made.from_memory(data) for data, made in zip(found, kernel.outputs, strict=True)]

    def _machine_code(self, lowered: LoweredKernel, name: str) -> list[Array]:
        """PTX in the simulator; a CPU's code as it is."""
        kernel, buffers = lowered.kernel, self._buffers(lowered.kernel)
        (code,) = self.backend.load([lowered])
        if self.device.is_nvidia:
            found, launch = run_ptx(kernel, code, buffers, Checks(device=self.device))
        else:
            found, launch = self.backend.launch(lowered, code, buffers)
        if launch is not None:
            self._no_findings(launch.findings, name, "bit-exact", "")
        return [made.from_memory(data) for data, made in zip(found, kernel.outputs, strict=True)]

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

    def _raised(self, error: WarpsmithError, kernel: EmittedKernel) -> _Found:
        passes = edited(self.backend.pipeline(kernel), self.whole.edits)
        step = passes[min(self.index, len(passes) - 1)].name
        what = "invalid IR" if isinstance(error, InvalidIr) else "raised"
        return _Found(self._culprit(step, lookup(step).contract, what, str(error)))

    def _culprit(self, step: str, contract: str, what: str, message: str, diff: str = "") -> Culprit:
        return Culprit(self.fusion.name, self.index, step, contract, what, message, diff=diff)


def _inexact(module: Operation) -> bool:
    """Whether a function is left whose expansion may differ from the simulator's own value of it."""
    return any(op.row.has(Trait.INEXACT) for op in module.walk())


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
