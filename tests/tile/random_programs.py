"""Random tile programs: layouts x scopes x dtypes x shapes, for copies and elementwise primitives.

`program(seed)` gives the text of a kernel.  The check is that the dispatched kernel in the simulator agrees with the
meaning of its primitives.
"""

from __future__ import annotations

import random

DTYPES = ("float32", "float16", "bfloat16", "float64", "int32", "int8", "uint8", "int16")
FLOATS = ("float32", "float16", "bfloat16")
UNARY = ("sqrt", "exp2", "abs", "neg", "relu", "square", "reciprocal", "floor")
BINARY = ("add", "sub", "mul", "maximum", "minimum")


def _shared_layout(r: random.Random, rows: int, columns: int, bytes_: int) -> str:
    kind = r.choice(("dense", "padded", "odd", "transposed", "tiled", "swizzled", "offset"))
    if kind == "tiled" and columns % 2:
        kind = "dense"
    if kind == "dense":
        return f"TileLayout(S[({rows}, {columns})])"
    if kind == "padded":
        return f"TileLayout(S[({rows}, {columns}) : ({columns + 16 // bytes_}, 1)])"
    if kind == "odd":
        return f"TileLayout(S[({rows}, {columns}) : ({columns + r.choice((1, 2, 3))}, 1)])"
    if kind == "transposed":
        return f"TileLayout(S[({rows}, {columns}) : (1, {rows + r.choice((0, 1))})])"
    if kind == "tiled":
        inner = r.choice([n for n in (2, 4, 8) if columns % n == 0])
        return f"TileLayout(S[({rows}, {columns // inner}, {inner}) : ({inner}, {rows * inner}, 1)])"
    if kind == "offset":
        return f"TileLayout(S[({rows}, {columns})] + {r.choice((1, 4, 8))})"
    log = {1: 4, 2: 3, 4: 2, 8: 1}[bytes_]
    chunk, bits = r.choice((log, max(log - 1, 0))), r.choice((1, 2, 3))
    return f"ComposeLayout({chunk}, {bits}, 3, tile=TileLayout(S[({rows}, {columns})]))"


def _register_layout(r: random.Random, scope: str, warps: int) -> tuple[tuple[int, int], str, bool]:
    """(shape, layout, whether every thread has exactly one part)."""
    k = r.choice((1, 2, 4, 8))
    if scope == "warp":
        choices = [
            ((32, k), f"S[(32, {k}) : (1 @ laneid, 1)]", True),
            ((k, 32), f"S[({k}, 32) : (1, 1 @ laneid)]", True),
            ((16, 8), "S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)]", True),
            ((8, 4 * k), f"S[(8, 4, {k}) : (4 @ laneid, 1 @ laneid, 1)]", True),
            ((32, 8), "S[(32, 2, 4) : (1 @ laneid, 1, 2)]", True),
            ((16, k), f"S[(16, {k}) : (1 @ laneid, 1)]", False),
            ((16, k), f"S[(16, {k}) : (2 @ laneid, 1)]", False),
            ((16, k), f"S[(16, {k}) : (1 @ laneid, 1)] + R[2 : 16 @ laneid]", True),
            ((8, k), f"S[(8, {k}) : (1 @ laneid, {r.choice((1, 2))})] + 8 @ laneid", False),
        ]
    else:
        choices = [
            ((32 * warps, k), f"S[({warps}, 32, {k}) : (1 @ warpid, 1 @ laneid, 1)]", True),
            ((32 * warps, k), f"S[({32 * warps}, {k}) : (1 @ tx, 1)]", True),
            ((warps * 8, 4 * k), f"S[({warps}, 8, 4, {k}) : (1 @ warpid, 4 @ laneid, 1 @ laneid, 1)]", True),
            ((32, warps * k), f"S[(32, {warps}, {k}) : (1 @ laneid, 1 @ warpid, 1)]", True),
        ]
    return r.choice(choices)


def program(seed: int) -> str:
    """A kernel: memory to registers or shared memory, a primitive or two, and back."""
    r = random.Random(seed)
    scope, warps = r.choice((("warp", 1), ("cta", 1), ("cta", 2), ("cta", 4)))
    through_registers = r.random() < 0.6
    use_primitives = r.random() < 0.8
    dtype = r.choice(FLOATS if use_primitives else DTYPES)
    bytes_ = {"float64": 8, "float32": 4, "int32": 4, "int8": 1, "uint8": 1}.get(dtype, 2)
    lines: list[str] = []
    if through_registers:
        (rows, columns), layout, whole = _register_layout(r, scope, warps)
        lines.append(f'X = T.alloc_buffer(({rows}, {columns}), "{dtype}", scope="local", layout=TileLayout({layout}))')
        sync = ""
    else:
        rows, columns = r.choice(((16, 16), (32, 8), (8, 64), (32, 32), (24, 16)))
        whole = True
        lines.append(
            f'X = T.alloc_shared(({rows}, {columns}), "{dtype}", layout={_shared_layout(r, rows, columns, bytes_)})'
        )
        sync = "T.cuda.cta_sync()"
    row, column = r.choice((0, 0, 1, 4)), r.choice((0, 0, 1, 2, 8))
    source = f"A[{row} : {row + rows}, {column} : {column + columns}]"
    target = f"B[{row} : {row + rows}, {column} : {column + columns}]"
    staged = through_registers and r.random() < 0.5
    if staged:
        lines.append(
            f'Y = T.alloc_shared(({rows}, {columns}), "{dtype}", layout={_shared_layout(r, rows, columns, bytes_)})'
        )
        lines += [f"Tx.{scope}.copy(Y, {source})", "T.cuda.cta_sync()", f"Tx.{scope}.copy(X, Y)"]
    else:
        lines += [f"Tx.{scope}.copy(X, {source})", sync]
    if use_primitives and whole:
        for _ in range(r.choice((1, 2))):
            if r.random() < 0.5:
                lines.append(f"Tx.{scope}.{r.choice(UNARY)}(X, X)")
            else:
                lines.append(f"Tx.{scope}.{r.choice(BINARY)}(X, X, {r.choice(('X', '0.5', '2.0'))})")
    if staged:
        lines += ["T.cuda.cta_sync()", f"Tx.{scope}.copy(Y, X)", "T.cuda.cta_sync()", f"Tx.{scope}.copy({target}, Y)"]
    else:
        lines += [sync, f"Tx.{scope}.copy({target}, X)"]
    body = "\n".join(f"    {line}" for line in lines if line)
    shape = "(160, 72)"
    return (
        "@T.prim_func\ndef k(A_ptr: T.handle, B_ptr: T.handle):\n"
        f'    A = T.match_buffer(A_ptr, {shape}, "{dtype}"); B = T.match_buffer(B_ptr, {shape}, "{dtype}")\n'
        f"    T.device_entry(); T.cta_id([1]); tid = T.thread_id([{32 * warps}])\n{body}\n"
    )
