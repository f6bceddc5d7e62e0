"""Which op works in which element type: a table made by trying.

Out: `support_table()`, one row for each opcode that can stand in a fusion and each element type.  Each row comes from a
small fusion that is compiled for a CPU and for a GPU; what a target refuses stands in the row in its own words.  HLO
itself lacks some combinations (a sine of integers): those rows say so.  `check` also runs a case, on this computer and
as PTX in the simulator, and compares it with the reference interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from warpsmith.arrays import Array
from warpsmith.compiler import compile
from warpsmith.compiler.generated import parameter_shapes
from warpsmith.dtypes import BY_NAME, DType, Kind, pack, unpack
from warpsmith.errors import InternalError, InvalidHlo, WarpsmithError
from warpsmith.hlo.evaluator import evaluate, evaluate_with_bounds
from warpsmith.hlo.module import HloModule
from warpsmith.hlo.opcodes import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.numerics.bounds import bound
from warpsmith.numerics.compare import Tolerance, compare
from warpsmith.numerics.inputs import Profile, random_array
from warpsmith.runtime.executable import Executable
from warpsmith.simt.ptx.launch import PtxLaunch, run_ptx

__all__ = ["Support", "SupportCase", "check", "support_cases", "support_table"]


TARGETS = ("cpu", "sm_90")
LENGTH = 37  # odd, and more than a vector of any type but the narrowest

_DTYPES: tuple[DType, ...] = tuple(row for row in BY_NAME.values() if row.is_array_element)
_SHORT = 5


@dataclass(frozen=True, slots=True)
class SupportCase:
    """One opcode on one element type, as a fusion's body; `profile` is of numbers that mean something to it."""

    opcode: str
    dtype: DType
    text: str
    profile: Profile = Profile.MIXTURE

    def module(self) -> HloModule:
        """Raises what the parser and the verifier raise where HLO has no such op."""
        return parse_hlo(self.text)


@dataclass(frozen=True, slots=True)
class Support:
    """`refused` gives, for a target that refuses, its reason; `absent` says why HLO has no such op ("" if it has).

    `wrong` is "" unless `check` ran the case and its result is not the reference interpreter's.
    """

    opcode: str
    dtype: DType
    absent: str = ""
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    wrong: str = ""

    def supported(self, target: str) -> bool:
        """Whether a target takes the op in this type."""
        return not self.absent and target not in self.refused

    def mark(self, target: str) -> str:
        """`yes`, `no`, or nothing where HLO has no such op."""
        return "" if self.absent else "no" if target in self.refused else "yes"


_COMPONENT = {"c64": "f32", "c128": "f64"}
_WHOLE = {"f32": "c64", "f64": "c128"}


def _unary_result(opcode: str, dtype: DType) -> str:
    if opcode == "is-finite":
        return "pred"
    if opcode in ("abs", "real", "imag"):
        return _COMPONENT.get(dtype.name, dtype.name)
    return dtype.name


def _body(parameters: Sequence[str], lines: Sequence[str], root: str, calls: str = "") -> str:
    given = [f"p{i} = {shape} parameter({i})" for i, shape in enumerate(parameters)]
    inside = "\n".join(f"  {line}" for line in (*given, *lines, f"ROOT r = {root}"))
    return f"HloModule m\n{calls}\nfused {{\n{inside}\n}}\n"


def _combiner(opcode: str, t: str) -> str:
    return f"combine {{ a = {t}[] parameter(0)  b = {t}[] parameter(1)  ROOT c = {t}[] {opcode}(a, b) }}"


def _unary(opcode: str) -> Callable[[DType], str]:
    attributes = ", exponent_bits=3, mantissa_bits=2" if opcode == "reduce-precision" else ""

    def text(dtype: DType) -> str:
        result = _unary_result(opcode, dtype)
        return _body([f"{dtype}[{LENGTH}]"], (), f"{result}[{LENGTH}] {opcode}(p0){attributes}")

    return text


def _binary(opcode: str) -> Callable[[DType], str]:
    attributes = ", direction=LT" if opcode == "compare" else ""

    def text(dtype: DType) -> str:
        result = {"compare": "pred", "complex": _WHOLE.get(dtype.name, "c64")}.get(opcode, dtype.name)
        shape = f"{dtype}[{LENGTH}]"
        return _body([shape, shape], (), f"{result}[{LENGTH}] {opcode}(p0, p1){attributes}")

    return text


def _convert(target: DType) -> Callable[[DType], str]:
    return lambda dtype: _body([f"{dtype}[{LENGTH}]"], (), f"{target}[{LENGTH}] convert(p0)")


def _bitcast_convert(dtype: DType) -> str:
    """To the integers of the same width; those to the floats of it, if there are any.  Complex numbers stay so."""
    if dtype.is_complex:
        return _body([f"{dtype}[{LENGTH}]"], (), f"{dtype}[{LENGTH}] bitcast-convert(p0)")
    same = [row for row in _DTYPES if row.bits == dtype.bits and row.kind is not Kind.PRED and row is not dtype]
    target = next((row for row in same if row.is_integer != dtype.is_integer), same[0] if same else dtype)
    return _body([f"{dtype}[{LENGTH}]"], (), f"{target}[{LENGTH}] bitcast-convert(p0)")


def _shaped(parameters: Sequence[str], root: str, lines: Sequence[str] = (), calls: str = "") -> Callable[[DType], str]:
    """A text with `T` for the type's name."""

    def text(dtype: DType) -> str:
        def fill(s: str) -> str:
            return s.replace("T[", f"{dtype}[")

        return _body(
            [fill(p) for p in parameters], [fill(each) for each in lines], fill(root), calls.replace("T[", f"{dtype}[")
        )

    return text


def _reducing(opcode: str, root: str) -> Callable[[DType], str]:
    def text(dtype: DType) -> str:
        return _shaped([f"T[{_SHORT},7]", "T[]"], root, calls=_combiner(opcode, dtype.name))(dtype)

    return text


def _constant(dtype: DType) -> str:
    if dtype.is_complex:
        values = "{(1, 0), (0, 1), (1, 1)}"
    elif dtype.kind is Kind.PRED:
        values = "{true, false, true}"
    else:
        values = "{1, 2, 1}" if dtype.name == "f8e8m0fnu" else "{1, 0, 1}"  # a type of scales has no zero
    shape = f"{dtype}[3]"
    return _body([shape], [f"k = {shape} constant({values})"], "pred[3] compare(p0, k), direction=EQ")


_DIMS = f"[{_SHORT},7]"
_ROWS: dict[str, Callable[[DType], str]] = {
    **{name: _unary(name) for name in ELEMENTWISE_UNARY if name != "convert"},
    **{name: _binary(name) for name in ELEMENTWISE_BINARY if name != "stochastic-convert"},
    "compare (total order)": lambda dtype: _binary("compare")(dtype).replace(
        "direction=LT", "direction=LT, type=TOTALORDER"
    ),
    "clamp": _shaped([f"T[{LENGTH}]"] * 3, f"T[{LENGTH}] clamp(p0, p1, p2)"),
    "select": _shaped([f"pred[{LENGTH}]", *[f"T[{LENGTH}]"] * 2], f"T[{LENGTH}] select(p0, p1, p2)"),
    "map": lambda dtype: _shaped(
        [f"T[{LENGTH}]"] * 2,
        f"T[{LENGTH}] map(p0, p1), dimensions={{0}}, to_apply=combine",
        calls=_combiner("maximum", dtype.name),
    )(dtype),
    "constant": _constant,
    "iota": _shaped([], f"T[3,{_SHORT}] iota(), iota_dimension=1"),
    "broadcast": _shaped(["T[7]"], f"T{_DIMS} broadcast(p0), dimensions={{1}}"),
    "reshape": _shaped([f"T{_DIMS}"], f"T[{_SHORT * 7}] reshape(p0)"),
    "transpose": _shaped([f"T{_DIMS}"], f"T[7,{_SHORT}] transpose(p0), dimensions={{1,0}}"),
    "reverse": _shaped([f"T{_DIMS}"], f"T{_DIMS} reverse(p0), dimensions={{1}}"),
    "slice": _shaped([f"T{_DIMS}"], "T[3,3] slice(p0), slice={[1:4], [1:7:2]}"),
    "pad": _shaped([f"T{_DIMS}", "T[]"], "T[8,11] pad(p0, p1), padding=1_2x1_-3_1"),
    "concatenate": _shaped([f"T{_DIMS}", f"T[{_SHORT},4]"], f"T[{_SHORT},11] concatenate(p0, p1), dimensions={{1}}"),
    "bitcast": _shaped([f"T{_DIMS}"], f"T[7,{_SHORT}] bitcast(p0)"),
    "bitcast-convert": _bitcast_convert,
    "reduce (maximum)": _reducing("maximum", f"T[{_SHORT}] reduce(p0, p1), dimensions={{1}}, to_apply=combine"),
    "reduce (add)": _reducing("add", f"T[{_SHORT}] reduce(p0, p1), dimensions={{1}}, to_apply=combine"),
    "reduce-window": _reducing(
        "maximum", f"T[{_SHORT},6] reduce-window(p0, p1), window={{size=1x2}}, to_apply=combine"
    ),
    "gather": _shaped(
        [f"T{_DIMS}", "s32[4,1]"],
        "T[4,1,3] gather(p0, p1), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, "
        "slice_sizes={1,3}",
    ),
    "dynamic-slice": _shaped(
        [f"T{_DIMS}", "s32[]", "s32[]"], "T[3,3] dynamic-slice(p0, p1, p2), dynamic_slice_sizes={3,3}"
    ),
    "dynamic-update-slice": _shaped(
        [f"T{_DIMS}", "T[3,3]", "s32[]", "s32[]"], f"T{_DIMS} dynamic-update-slice(p0, p1, p2, p3)"
    ),
    "dot": _shaped(["T[3,6]", "T[6,4]"], "T[3,4] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    "convolution": _shaped(
        ["T[1,8,2]", "T[3,2,3]"], "T[1,6,3] convolution(p0, p1), window={size=3}, dim_labels=b0f_0io->b0f"
    ),
    **{f"convert to {row}": _convert(row) for row in _DTYPES},
}
_SUMS = frozenset({"reduce (add)", "dot", "convolution"})


# Complex functions whose error is their condition's: at an angle of many turns both we and the reference interpreter
# lose digits that nobody bounds.
_ILL_CONDITIONED = frozenset({"power"})
_LOOSE = 1e-9


def _profile(opcode: str, dtype: DType) -> Profile:
    """Sums of huge numbers have no digits that mean anything."""
    tame = opcode in _SUMS or (dtype.is_complex and opcode in _ILL_CONDITIONED)
    return Profile.TAME if tame else Profile.MIXTURE


def support_cases(opcodes: Iterable[str] | None = None, dtypes: Iterable[str] | None = None) -> Iterator[SupportCase]:
    """All cases, by opcode and then by type; `opcodes` and `dtypes` choose some by name."""
    wanted = None if opcodes is None else set(opcodes)
    kept = None if dtypes is None else set(dtypes)
    for opcode, text in _ROWS.items():
        for dtype in _DTYPES:
            if (wanted is None or opcode in wanted) and (kept is None or dtype.name in kept):
                yield SupportCase(opcode, dtype, text(dtype), _profile(opcode, dtype))


def support_table(
    opcodes: Iterable[str] | None = None, dtypes: Iterable[str] | None = None, targets: Sequence[str] = TARGETS
) -> list[Support]:
    """One row for each opcode and element type (or those chosen by name).  An InternalError, our own bug, is raised."""
    return [_compiled(case, targets).row for case in support_cases(opcodes, dtypes)]


def check(case: SupportCase, targets: Sequence[str] = TARGETS, seed: int = 0) -> Support:
    """The row of a case, run on seeded input and compared: on this computer, and a GPU's PTX in the simulator."""
    found = _compiled(case, targets)
    if found.module is None or not found.executables:
        return found.row
    shapes = parameter_shapes(found.module)
    arrays = [
        random_array(shape.dtype, shape.dims, seed=seed, parameter=i, profile=case.profile)
        for i, shape in enumerate(shapes)
    ]
    expected, tolerance = _expected(case, found.module, arrays)
    for target, exe in found.executables.items():
        actual = _results(exe, found.module, arrays)
        differs = compare(actual, expected, tolerance)
        if not differs.match:
            return replace(
                found.row,
                wrong=f"{target}: {differs.mismatches} of {differs.elements} elements differ, by up to "
                f"{differs.max_ulp} ulp: {differs.actual}, not {differs.expected}",
            )
    return found.row


def _expected(case: SupportCase, module: HloModule, arrays: Sequence[Array]) -> tuple[Array, Tolerance]:
    """The reference interpreter's result, and how near to it another must be."""
    if case.dtype.is_complex and case.opcode in _ILL_CONDITIONED:
        return evaluate(module, *arrays)[0], Tolerance(rel_error=_LOOSE)
    values, bounds = evaluate_with_bounds(module, *arrays, op_ulp_bound=bound)
    return values[0], Tolerance(absolute=bounds[0])


def _results(exe: Executable, module: HloModule, arrays: Sequence[Array]) -> Array:
    """The one output of a module of one kernel."""
    if exe.target == "cpu":
        return exe(*arrays)[0]
    (kernel,) = exe.kernels
    (leaf,) = module.entry.root.shape.leaves()
    buffers = [_packed(array, shape.dtype) for array, shape in zip(arrays, parameter_shapes(module), strict=True)]
    buffers.append(_packed(np.zeros(leaf.dims, leaf.dtype.numpy), leaf.dtype))
    run_ptx(exe.artifact("ptx"), buffers, PtxLaunch(kernel.grid, kernel.block))
    # An update in place is made in its operand's buffer.
    found = buffers[0 if kernel.emitter == "dynamic_update_slice" else -1]
    if leaf.dtype.bits < 8:
        found = unpack(found, leaf.dtype.bits, leaf.elements)
    return found.view(leaf.dtype.numpy).reshape(leaf.dims)


def _packed(array: Array, dtype: DType) -> Array:
    flat = np.array(array).reshape(-1)
    return flat if dtype.bits >= 8 else pack(flat.view(np.uint8), dtype.bits)


@dataclass(frozen=True, slots=True)
class _Compiled:
    row: Support
    module: HloModule | None = None
    executables: Mapping[str, Executable] = field(default_factory=dict[str, Executable])


def _compiled(case: SupportCase, targets: Sequence[str]) -> _Compiled:
    try:
        module = case.module()
    except WarpsmithError as error:
        return _Compiled(Support(case.opcode, case.dtype, absent=error.cause))
    refused: dict[str, str] = {}
    executables: dict[str, Executable] = {}
    for target in targets:
        try:
            executables[target] = compile(module, target, cache=False)
        except InternalError:
            raise
        except InvalidHlo as error:
            return _Compiled(Support(case.opcode, case.dtype, absent=error.cause))
        except WarpsmithError as error:
            refused[target] = error.cause
    return _Compiled(Support(case.opcode, case.dtype, refused=refused), module, executables)
