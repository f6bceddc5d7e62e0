"""Random reductions: layouts x scopes x element types x shapes x axes, for `random_programs.py`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from tests.tile.random_layouts import SCOPES, Factor, Registers, memory_layout, register_tile, scope_threads
from tests.tile.random_text import kernel, sync_of

DTYPES = ("float32", "float32", "float16", "bfloat16", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16",
          "uint32", "uint64", "float8_e5m2")  # fmt: skip
WIDER = {
    "float16": "float32",
    "bfloat16": "float32",
    "int8": "int32",
    "uint8": "int32",
    "float32": "float64",
    "int16": "int64",
}


def reduction_program(seed: int) -> str:
    """A kernel that copies A in, reduces it over some axes, and copies the result to B."""
    r = random.Random(seed)
    scope, block = r.choice((*SCOPES, ("thread", 32), ("cta", 128), ("cta", 256)))
    dtype, name, accum = r.choice(DTYPES), r.choice(("sum", "max", "min")), r.random() < 0.5
    out_dtype = WIDER.get(dtype, dtype) if r.random() < 0.2 else dtype
    if scope == "thread":
        return _own(r, dtype, out_dtype, name, accum)
    local = r.random() < 0.55
    threads = scope_threads(scope, block)
    tile = register_tile(r, scope, threads, rank=r.choice((1, 2, 2, 3)), partial=r.random() < 0.15)
    shape = tile.shape if local else r.choice(
        ((64,), (100,), (4, 8), (7, 12), (16, 32), (33, 8), (32, 33), (2, 128), (1, 200), (4, 6, 8), (3, 16, 5))
    )  # fmt: skip
    axes = sorted(r.sample(range(len(shape)), r.randint(1, len(shape))))
    config = ""
    if local:
        result, config = _result(r, tile, axes)
        made = [tile.allocation("X", dtype), result.allocation("Y", out_dtype)]
        out, x, y = result.shape, "X", "Y"
    else:
        out = tuple(1 if d in axes else extent for d, extent in enumerate(shape))
        if r.random() < 0.3 and len(axes) < len(shape):
            out = tuple(extent for d, extent in enumerate(shape) if d not in axes)
        wide = tuple(extent + r.choice((0, 1, 3)) for extent in shape)
        first = [r.randint(0, w - e) for w, e in zip(wide, shape, strict=True)]
        x = f"X[{', '.join(f'{a} : {a + e}' for a, e in zip(first, shape, strict=True))}]"
        y = "Y"
        made = [
            f'X = T.alloc_shared({wide}, "{dtype}", layout={memory_layout(r, wide, dtype)})',
            f'Y = T.alloc_shared({out}, "{out_dtype}", layout={memory_layout(r, out, out_dtype)})',
        ]
    spelled: Sequence[int] | int = [axis - len(shape) if r.random() < 0.3 else axis for axis in axes]
    if len(axes) == 1 and r.random() < 0.3:
        spelled = spelled[0]
    call = f"Tx.{scope}.{name}({y}, {x}, axes={spelled}, accum={accum}{config})"
    sync = "" if local else sync_of(scope)
    calls = [f"Tx.{scope}.copy({x}, A)", f"Tx.{scope}.copy({y}, C)" if accum else "", sync]
    turns = r.choice((1, 1, 2))
    calls += [call] if turns == 1 else [f"for i in range({turns}):", f"    {call}"]
    calls += [sync, f"Tx.{scope}.copy(B, {y})"]
    alone = scope == "warpgroup" and block == 256
    lines = [*made, *(["if tid < 128:"] if alone else []), *(f"    {c}" if alone else c for c in calls if c)]
    return kernel(lines, [("A", shape, dtype, ""), ("C", out, out_dtype, ""), ("B", out, out_dtype, "")], block)


def _result(r: random.Random, tile: Registers, axes: Sequence[int]) -> tuple[Registers, str]:
    """The tile without its reduced dims: their threads have copies, or one of them has the result, or each a slot."""
    dims: list[tuple[Factor, ...]] = list(tile.dims)
    form = r.choice(("copies", "copies", "copies", "one", "slots", "slots"))
    spread = [f for axis in axes for f in tile.dims[axis] if f.axis]
    left = [f for d, factors in enumerate(tile.dims) if d not in axes for f in factors if f.axis]
    if not left and not tile.copies and form == "one":
        form = "copies"
    for axis in axes:
        kept = tuple(f for f in tile.dims[axis] if f.axis) if form == "slots" else ()
        dims[axis] = kept or (Factor(1, 1),)
    stride = 1
    for d in reversed(range(len(dims))):  # registers that are left lie densely
        packed: list[Factor] = []
        for factor in reversed(dims[d]):
            packed.insert(0, factor if factor.axis else Factor(factor.extent, stride))
            stride *= 1 if factor.axis else factor.extent
        dims[d] = tuple(packed)
    copies = (*tile.copies, *spread) if form == "copies" else tile.copies
    result = replace(tile, dims=tuple(dims), copies=copies)
    return result, ", thread_reduce=True" if form == "slots" and r.random() < 0.5 else ""


def _own(r: random.Random, dtype: str, out_dtype: str, name: str, accum: bool) -> str:
    """Each thread reduces registers of its own, or a row of shared memory."""
    k, rows = r.choice((1, 2, 3, 8)), r.choice((1, 2, 4))
    axes = r.choice(([0], [1], [-1], [0, 1]))
    reduced = {axis % 2 for axis in axes}
    out = (1 if 0 in reduced else rows, 1 if 1 in reduced else k)
    lines = [f'X = T.alloc_local(({rows}, {k}), "{dtype}")', f'Y = T.alloc_local({out}, "{out_dtype}")',
             r.choice(("if tid < 20:", "if tid % 3 == 1:", "if True:"))]  # fmt: skip
    lines += [f"    Tx.copy(X, A[tid * {rows} : tid * {rows} + {rows}, 0:{k}])"]
    lines += [f"    Tx.copy(Y, C[tid * {out[0]} : tid * {out[0]} + {out[0]}, 0:{out[1]}])"] if accum else []
    lines += [f"    Tx.{name}(Y, X, axes={axes}, accum={accum})"]
    lines += [f"    Tx.copy(B[tid * {out[0]} : tid * {out[0]} + {out[0]}, 0:{out[1]}], Y)"]
    whole = (32 * out[0], out[1])
    return kernel(
        lines, [("A", (32 * rows, k), dtype, ""), ("C", whole, out_dtype, ""), ("B", whole, out_dtype, "")], 32
    )
