"""Every hero emitter, by element type and shape: one small fusion a cell, run every way that there is.

`CELLS` are the cells; `check(cell)` runs one: on this computer, and for a GPU in the simulator, as IR and as PTX, with
every check on.  Each result is held against the reference interpreter's, within its bounds; each finding of the
simulator is a fault, but for two threads that write the same value where a tile's edge is clipped.

A cell names the emitter that it is for.  Where that emitter refuses the fusion by a rule (a dimension that is too
short, a type that it has no tile for), another takes it, the result has to be right all the same, and the verdict says
by which words it was refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from differential import assert_close
from hero_kernels import body

from warpsmith.arrays import Array
from warpsmith.backends.nvptx.codegen import ptx_from_llvm
from warpsmith.backends.nvptx.ptxas import assemble
from warpsmith.compiler import LoweredKernel, compile, lower_fusion, simulate
from warpsmith.devices import device
from warpsmith.emitters.choose import refusals
from warpsmith.errors import UnsupportedFusion, WarpsmithError
from warpsmith.hlo.evaluator import evaluate_with_bounds
from warpsmith.hlo.module import HloModule
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.hlo_passes.wrap import wrap
from warpsmith.numerics.bounds import bound
from warpsmith.numerics.inputs import Profile, indices, random_array
from warpsmith.schedule.schedule import make_schedule

__all__ = ["CELLS", "DTYPES", "KINDS", "Cell", "Verdict", "assembles", "check"]


TARGET = "sm_90"
DTYPES = ("f32", "bf16", "s8", "f64", "pred", "c64", "s4")
KINDS = ("round", "odd", "tiny", "ones", "empty", "layout", "wide")
"""Shapes: multiples of every tile; of none; less than one; with dims of 1; with no elements; not row-major; and so
large that a GPU's threads take several elements each, as vectors."""

Text = Callable[[str, str], str | None]
"""(dtype, kind) -> the fusion's body; None where there is no such cell."""


@dataclass(frozen=True)
class Cell:
    """One fusion, and the emitter that it is for.  `unique`, `ordered`: what the indices of a scatter are."""

    emitter: str
    variant: str
    dtype: str
    kind: str
    text: str
    extents: tuple[tuple[int, int], ...] = ()
    unique: bool = False
    ordered: bool = False

    @property
    def name(self) -> str:
        return f"{self.emitter}, {self.variant}: {self.dtype}, {self.kind}"

    def module(self) -> HloModule:
        return parse_hlo(body(self.text).replace("HloModule m\n", f"HloModule m\n{_COMPUTATIONS}"))


@dataclass(frozen=True)
class Verdict:
    """How a cell went.  `wrong`: what is; `refused`: why another emitter took it, or none does."""

    taken_by: str
    variant: str = ""
    refused: str = ""
    wrong: str = ""


# ------------------------------------------------------------------------------------------------------------- shapes
def _type(dtype: str, dims: Sequence[int], layout: str = "") -> str:
    return f"{dtype}[{','.join(map(str, dims))}]{layout}"


def _layout(kind: str, rank: int) -> str:
    """Column-major for the kind "layout", nothing for the others."""
    return "{" + ",".join(map(str, range(rank))) + "}" if kind == "layout" else ""


_SUM = {"pred": "or"}


def _loop(dtype: str, kind: str) -> str | None:
    dims = {
        "round": (64, 256),
        "odd": (37, 53),
        "tiny": (3,),
        "ones": (1, 33, 1, 1),
        "empty": (0, 5),
        "layout": (24, 37),
        "wide": (264, 1028),
    }[kind]
    shape = _type(dtype, dims, _layout(kind, len(dims)))
    return f"""
        x = {shape} parameter(0)
        y = {shape} parameter(1)
        ROOT r = {shape} {_SUM.get(dtype, "add")}(x, y)"""


def _transposed(dtype: str, dims: Sequence[int], order: Sequence[int], kind: str) -> str:
    """A transpose with arithmetic before it and after it."""
    layout = _layout(kind, len(dims))
    given, made = _type(dtype, dims, layout), _type(dtype, [dims[d] for d in order], layout)
    op = _SUM.get(dtype, "add")
    return f"""
        x = {given} parameter(0)
        y = {made} parameter(1)
        d = {given} {op}(x, x)
        t = {made} transpose(d), dimensions={{{",".join(map(str, order))}}}
        ROOT r = {made} {op}(t, y)"""


def _minor_moved(dtype: str, kind: str) -> str | None:
    dims = {
        "round": (64, 96),
        "odd": (37, 53),
        "tiny": (3, 5),
        "ones": (1, 33, 1, 40),
        "empty": (0, 40),
        "layout": (40, 48),
    }[kind]
    order = (3, 2, 1, 0) if len(dims) == 4 else (1, 0)
    return _transposed(dtype, dims, order, kind)


def _outer_moved(dtype: str, kind: str) -> str | None:
    dims = {
        "round": (3, 32, 64),
        "odd": (5, 33, 47),
        "tiny": (2, 1, 3),
        "ones": (1, 40, 35),
        "empty": (4, 0, 40),
        "layout": (3, 40, 36),
    }[kind]
    order = {"round": (0, 2, 1), "odd": (2, 0, 1), "layout": (2, 0, 1)}.get(kind, (2, 1, 0))
    return _transposed(dtype, dims, order, kind)


def _minor_kept(dtype: str, kind: str) -> str | None:
    minor = {"f32": 2, "bf16": 3, "s8": 5, "pred": 3, "s4": 4, "f64": 2, "c64": 2}[dtype]
    dims = {
        "round": (64, 96, minor),
        "odd": (37, 53, minor),
        "tiny": (3, 2, minor),
        "ones": (40, 33, 1),
        "empty": (0, 40, minor),
        "layout": (40, 48, minor),
    }[kind]
    return _transposed(dtype, dims, (1, 0, 2), kind)


def _packed(dtype: str, kind: str) -> str | None:
    side = {"bf16": 64, "s8": 128, "pred": 128, "s4": 256}.get(dtype)
    if side is None or kind in ("tiny", "ones", "empty", "layout"):
        return None  # the packed tile takes no other; `minor moved` has these shapes
    if kind == "round":
        return _transposed(dtype, (side, 2 * side), (1, 0), kind)
    return _transposed(dtype, (3, side - side // 4, side + side // 8), (0, 2, 1), kind)


# --------------------------------------------------------------------------------------------------------- reductions
def _zero(dtype: str) -> str:
    return {"pred": "false", "c64": "(0,0)"}.get(dtype, "0")


_REDUCERS = {
    **{dtype: f"add_{dtype}" for dtype in ("f32", "bf16", "f64", "c64", "s4", "s8")},
    "pred": "or_pred",
}
_TWO = """
add_s8 { a = s8[] parameter(0)  b = s8[] parameter(1)  ROOT r = s8[] add(a, b) }
or_pred { a = pred[] parameter(0)  b = pred[] parameter(1)  ROOT r = pred[] or(a, b) }
"""


def _reduced(dtype: str, dims: Sequence[int], gone: Sequence[int], kind: str) -> str:
    """A reduction of a sum, and arithmetic on its result."""
    kept = [n for d, n in enumerate(dims) if d not in gone]
    given, made = _type(dtype, dims, _layout(kind, len(dims))), _type(dtype, kept)
    op = _SUM.get(dtype, "add")
    return f"""
        x = {given} parameter(0)
        z = {dtype}[] constant({_zero(dtype)})
        d = {given} {op}(x, x)
        s = {made} reduce(d, z), dimensions={{{",".join(map(str, gone))}}}, to_apply={_REDUCERS[dtype]}
        ROOT r = {made} {"not" if dtype == "pred" else "negate"}(s)"""


def _row(dtype: str, kind: str) -> str | None:
    dims = {"round": (24, 1024), "odd": (13, 1117), "tiny": (2, 3), "ones": (1, 1, 99), "empty": (5, 0)}
    if kind == "layout":
        return _reduced(dtype, (300, 20), (0,), kind)
    return _reduced(dtype, dims[kind], (len(dims[kind]) - 1,), kind)


def _multi_row(dtype: str, kind: str) -> str | None:
    dims = {"round": (512, 16), "odd": (333, 8), "tiny": (3, 2), "ones": (1, 77, 4), "empty": (0, 8)}
    if kind == "layout":
        return _reduced(dtype, (16, 200), (0,), kind)
    return _reduced(dtype, dims[kind], (len(dims[kind]) - 1,), kind)


def _column(dtype: str, kind: str) -> str | None:
    dims = {"round": (256, 128), "odd": (261, 77), "tiny": (3, 2), "ones": (1, 140, 1, 40), "empty": (0, 40)}
    if kind == "layout":
        return _reduced(dtype, (80, 200), (1,), kind)
    gone = (1,) if kind == "ones" else (0,)
    return _reduced(dtype, dims[kind], gone, kind)


def _small_column(dtype: str, kind: str) -> str | None:
    dims = {"round": (4, 512, 8), "odd": (3, 411, 4), "tiny": (1, 2, 2), "ones": (1, 300, 16), "empty": (2, 0, 4)}
    if kind == "layout":
        return _reduced(dtype, (8, 300, 3), (1,), kind)
    return _reduced(dtype, dims[kind], (1,), kind)


def _variadic(dtype: str, kind: str) -> str | None:
    """The largest element of each row, and where it is: of equal ones the first."""
    if dtype in ("c64", "s4"):
        return None  # complex numbers have no order; `largest` of s4 is that of s8
    dims = {"round": (24, 512), "odd": (13, 333), "tiny": (2, 3), "ones": (1, 1, 99), "empty": (4, 0)}
    shape, gone = (300, 20), 0
    if kind != "layout":
        shape, gone = dims[kind], len(dims[kind]) - 1
    kept = [n for d, n in enumerate(shape) if d != gone]
    layout = _layout(kind, len(shape))
    least = {"pred": "false", "s8": "-128"}.get(dtype, "-inf")
    given, at = _type(dtype, shape, layout), _type("s32", shape, layout)
    made = f"({_type(dtype, kept)}, {_type('s32', kept)})"
    return f"""
        x = {given} parameter(0)
        i = {at} iota(), iota_dimension={gone}
        z = {dtype}[] constant({least})
        n = s32[] constant(2147483647)
        ROOT r = {made} reduce(x, i, z, n), dimensions={{{gone}}}, to_apply=largest_{dtype}"""


def _largest(dtype: str) -> str:
    return f"""largest_{dtype} {{
  a = {dtype}[] parameter(0)  i = s32[] parameter(1)  b = {dtype}[] parameter(2)  j = s32[] parameter(3)
  g = pred[] compare(a, b), direction=GT  e = pred[] compare(a, b), direction=EQ
  l = pred[] compare(i, j), direction=LT  t = pred[] and(e, l)  k = pred[] or(g, t)
  m = {dtype}[] select(k, a, b)  n = s32[] select(k, i, j)
  ROOT r = ({dtype}[], s32[]) tuple(m, n)
}}
"""


# -------------------------------------------------------------------------------------- concatenate, slices, updates
def _concatenate(dtype: str, kind: str) -> str | None:
    sizes, rest, along = {
        "round": ((32, 64, 32), (128,), 1),
        "odd": ((5, 7, 1), (33,), 1),
        "tiny": ((1, 2, 1), (), 0),
        "ones": ((1, 1, 1), (1, 40), 0),
        "empty": ((0, 5, 3), (7,), 0),
        "layout": ((20, 9, 3), (31,), 1),
        "wide": ((1036, 8, 12), (264,), 1),
    }[kind]

    def shape(size: int) -> str:
        dims = [*rest[:along], size, *rest[along:]]
        return _type(dtype, dims, _layout(kind, len(dims)))

    lines = [f"p{i} = {shape(size)} parameter({i})" for i, size in enumerate(sizes)]
    op = _SUM.get(dtype, "add")
    return "\n".join(
        [
            *lines,
            f"d = {shape(sizes[1])} {op}(p1, p1)",
            f"c = {shape(sum(sizes))} concatenate(p0, d, p2), dimensions={{{along}}}",
            f"q = {shape(sum(sizes))} parameter(3)",
            f"ROOT r = {shape(sum(sizes))} {op}(c, q)",
        ]
    )


def _update(dtype: str, kind: str) -> str | None:
    dims, part = {
        "round": ((128, 128), (32, 64)),
        "odd": ((61, 37), (13, 9)),
        "tiny": ((3,), (2,)),
        "ones": ((1, 50, 1), (1, 7, 1)),
        "empty": ((20, 9), (0, 9)),
        "layout": ((40, 33), (7, 33)),
        "wide": ((301, 1100), (264, 1028)),
    }[kind]
    layout, op = _layout(kind, len(dims)), _SUM.get(dtype, "add")
    whole, piece = _type(dtype, dims, layout), _type(dtype, part, layout)
    starts = [f"i{d} = s32[] parameter({2 + d})" for d in range(len(dims))]
    return "\n".join(
        [
            f"x = {whole} parameter(0)",
            f"u = {piece} parameter(1)",
            *starts,
            f"d = {piece} {op}(u, u)",
            f"ROOT r = {whole} dynamic-update-slice(x, d, {', '.join(f'i{d}' for d in range(len(dims)))})",
        ]
    )


def _input_slices(dtype: str, kind: str) -> str | None:
    dims, cuts = {
        "round": ((64, 128), (((0, 64), (0, 64)), ((0, 64), (64, 128)), ((16, 48), (32, 96)))),
        "odd": ((37, 29), (((1, 30), (0, 29)), ((5, 37), (3, 20)))),
        "tiny": ((3,), (((0, 1), (2, 3)))),
        "ones": ((1, 45, 1), (((0, 1), (0, 20), (0, 1)), ((0, 1), (10, 45), (0, 1)))),
        "empty": ((0, 6), (((0, 0), (0, 3)), ((0, 0), (2, 6)))),
        "layout": ((30, 44), (((0, 30), (0, 22)), ((3, 29), (20, 44)))),
        "wide": ((264, 1028), (((0, 264), (0, 512)), ((3, 260), (516, 1028)))),
    }[kind]
    if kind == "tiny":
        cuts = (((0, 1),), ((1, 3),))
    layout, op = _layout(kind, len(dims)), _SUM.get(dtype, "add")
    whole = _type(dtype, dims, layout)
    lines, types = [f"x = {whole} parameter(0)", f"d = {whole} {op}(x, x)"], []
    for i, cut in enumerate(cuts):
        types.append(_type(dtype, [b - a for a, b in cut], layout))
        ranges = ",".join(f"[{a}:{b}]" for a, b in cut)
        lines.append(f"s{i} = {types[-1]} slice(d), slice={{{ranges}}}")
    lines.append(f"ROOT r = ({', '.join(types)}) tuple({', '.join(f's{i}' for i in range(len(cuts)))})")
    return "\n".join(lines)


# ----------------------------------------------------------------------------------------------------------- scatters
_SCATTERS = {
    "round": (64, 256, 16),
    "odd": (33, 77, 5),
    "tiny": (2, 1, 1),
    "ones": (40, 50, 1),
    "empty": (9, 0, 4),
    "layout": (20, 60, 6),
    "wide": (70, 275, 1028),
}
_SORTED = {
    **_SCATTERS,
    "round": (64, 1024, 16),
    "odd": (33, 777, 5),
    "ones": (1, 600, 1),
    "layout": (20, 640, 6),
    "wide": (40, 640, 512),
}


def _scatter(dtype: str, kind: str, flags: str, reducer: str, sizes: Mapping[str, tuple[int, int, int]]) -> str:
    rows, count, width = sizes[kind]
    operand = _type(dtype, (rows, width), _layout(kind, 2))
    updates = _type(dtype, (count, 1, width), "{1,0,2}" if kind == "layout" else "")
    return f"""
        x = {operand} parameter(0)
        i = s32[{count},1] parameter(1)
        u = {updates} parameter(2)
        ROOT r = {operand} scatter(x, i, u), update_window_dims={{1,2}}, inserted_window_dims={{}},
        scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply={reducer}{flags}"""


def _distributed(dtype: str, kind: str) -> str | None:
    return _scatter(dtype, kind, "", _REDUCERS[dtype], _SCATTERS)


def _sorted(dtype: str, kind: str) -> str | None:
    return _scatter(dtype, kind, ", indices_are_sorted=true", _REDUCERS[dtype], _SORTED)


def _unique(dtype: str, kind: str) -> str | None:
    return _scatter(dtype, kind, ", unique_indices=true", _REDUCERS[dtype], _SCATTERS)


def _overwritten(dtype: str, kind: str) -> str | None:
    return _scatter(dtype, kind, ", unique_indices=true", f"last_{dtype}", _SCATTERS)


def _combined(op: str) -> Text:
    def text(dtype: str, kind: str) -> str | None:
        return None if dtype == "c64" else _scatter(dtype, kind, "", f"{op}_{dtype}", _SCATTERS)

    return text


def _scalar_computations() -> str:
    """For each element type a product, the larger, the smaller, and the second of two."""
    found = [_TWO]
    for dtype in DTYPES:
        for name, op in (("product", "multiply"), ("larger", "maximum"), ("smaller", "minimum")):
            if dtype != "c64":
                found.append(
                    f"{name}_{dtype} {{ a = {dtype}[] parameter(0)  b = {dtype}[] parameter(1)  "
                    f"ROOT r = {dtype}[] {op}(a, b) }}\n"
                )
        found.append(f"last_{dtype} {{ a = {dtype}[] parameter(0)  ROOT b = {dtype}[] parameter(1) }}\n")
        if dtype not in ("c64", "s4"):
            found.append(_largest(dtype))
    return "".join(found)


_COMPUTATIONS = _scalar_computations()
_VARIANTS: Mapping[tuple[str, str], Text] = {
    ("loop", "elementwise"): _loop,
    ("transpose", "minor moved"): _minor_moved,
    ("transpose", "three dims"): _outer_moved,
    ("transpose", "minor kept"): _minor_kept,
    ("transpose", "packed"): _packed,
    ("reduction", "row"): _row,
    ("reduction", "multi-row"): _multi_row,
    ("reduction", "column"): _column,
    ("reduction", "small column"): _small_column,
    ("reduction", "variadic"): _variadic,
    ("concatenate", "three"): _concatenate,
    ("dynamic_update_slice", "in place"): _update,
    ("input_slices", "two or three"): _input_slices,
    ("scatter", "add"): _distributed,
    ("scatter", "sorted"): _sorted,
    ("scatter", "unique"): _unique,
    ("scatter", "overwrite"): _overwritten,
    ("scatter", "product"): _combined("product"),
    ("scatter", "larger"): _combined("larger"),
    ("scatter", "smaller"): _combined("smaller"),
}


_WIDENED = frozenset(
    {
        ("loop", "elementwise"),
        ("concatenate", "three"),
        ("dynamic_update_slice", "in place"),
        ("input_slices", "two or three"),
        ("scatter", "add"),
        ("scatter", "sorted"),
        ("scatter", "unique"),
    }
)
"""Whose launch gives a thread several elements when there are many; the tiles of the others don't depend on that."""


def _cells() -> list[Cell]:
    found: list[Cell] = []
    for (emitter, variant), make in _VARIANTS.items():
        for dtype in DTYPES:
            for kind in KINDS:
                if kind == "wide" and (emitter, variant) not in _WIDENED:
                    continue
                text = make(dtype, kind)
                if text is None:
                    continue
                extents: tuple[tuple[int, int], ...] = ()
                if emitter == "scatter":
                    extents = ((1, (_SORTED if variant == "sorted" else _SCATTERS)[kind][0]),)
                if emitter == "dynamic_update_slice":
                    extents = tuple((2 + d, 30) for d in range(text.count("s32[] parameter")))
                unique = variant in ("unique", "overwrite")
                found.append(Cell(emitter, variant, dtype, kind, text, extents, unique, variant == "sorted"))
    return found


CELLS: tuple[Cell, ...] = tuple(_cells())


# ------------------------------------------------------------------------------------------------------------ running
def _inputs(cell: Cell, module: HloModule) -> list[Array]:
    extents = dict(cell.extents)
    arrays: list[Array] = []
    for i, parameter in enumerate(module.entry.parameters):
        shape = parameter.array_shape
        if i in extents:
            flags = {"unique": cell.unique, "ordered": cell.ordered}
            arrays.append(indices(shape.dims, shape.dtype, extents[i], seed=1, parameter=i, **flags))
        elif cell.emitter == "scatter" and shape.dtype.is_float and shape.dtype.bits < 32:
            # Sums of few bits in any order are the same only of small whole numbers.
            values = np.random.default_rng([1, i]).integers(-1, 2, shape.dims)
            arrays.append(values.astype(shape.dtype.numpy))
        else:
            arrays.append(random_array(shape.dtype, shape.dims, seed=1, parameter=i, profile=Profile.TAME))
    return arrays


def _kernel(module: HloModule, target: str) -> LoweredKernel | None:
    """The kernel of a module; None for one with no step."""
    steps = [step for step in make_schedule(wrap(module)).steps if step.kind == "kernel"]
    return lower_fusion(steps[0].instruction, device(target)) if steps else None


def check(cell: Cell) -> Verdict:
    """Run a cell every way; the verdict."""
    module = cell.module()
    arrays = _inputs(cell, module)
    try:
        kernel = _kernel(module, TARGET)
    except UnsupportedFusion as refused:
        return Verdict("", refused=str(refused.cause))
    expected, bounds = evaluate_with_bounds(module, *arrays, op_ulp_bound=bound)
    taken, variant, why = "", "", ""
    if kernel is not None:
        taken, variant = kernel.kernel.origin.emitter, kernel.kernel.origin.variant
        if taken != cell.emitter:
            why = next(each.reason for each in refusals(kernel.kernel) if each.emitter == cell.emitter)
    wrong: list[str] = []

    def compare(found: Sequence[Array], where: str) -> None:
        try:
            assert_close(found, expected, bounds, module, where)
        except AssertionError as error:
            wrong.append(str(error))

    compare(compile(module, cache=False)(*arrays), "on the CPU")
    for stage in ("buffers", "ptx"):
        simulation = simulate(module, *arrays, target=TARGET, stage=stage)
        wrong += [f"{stage}: {finding.code}: {finding.message}" for finding in simulation.findings]
        if simulation.outputs:
            compare(simulation.outputs, f"in the simulator's {stage}")
        elif prod(len(each.dims) or 1 for each in module.entry.root.shape.leaves()) and not simulation.findings:
            wrong.append(f"{stage}: no outputs")
    return Verdict(taken, variant, why, "; ".join(wrong))


def assembles(cell: Cell, target: str) -> str:
    """What ptxas has against a cell's PTX for a target; empty for nothing."""
    kernel = _kernel(cell.module(), target)
    if kernel is None:
        return ""
    machine = device(target)
    try:
        assemble(ptx_from_llvm(kernel.code, machine.architecture), machine.architecture)
    except WarpsmithError as error:
        return str(error)
    return ""
