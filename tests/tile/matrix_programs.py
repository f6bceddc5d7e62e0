"""Random tile programs for what a warp's matrix units and asynchronous copies do: layouts x swizzles x scopes x types.

Each function gives the text of a kernel from a seed.  The check is that the dispatched kernel in the simulator agrees
with the meaning of its primitives, without findings.
"""

from __future__ import annotations

import random

IMPORT = "from warpsmith.tile import mma_a, mma_b, mma_c, wid_in_wg\n"
HALVES = ("float16", "bfloat16", "int16", "uint16")


def shared_layout(r: random.Random, rows: int, columns: int) -> str:
    """A layout of 16-bit elements in shared memory, with rows or columns of 8 together, or without."""
    kind = r.choice(
        ("dense", "padded", "transposed", "transposed", "torn", "swizzled", "swizzled", "blocked", "offset")
    )
    if kind == "padded":
        return f"TileLayout(S[({rows}, {columns}) : ({columns + r.choice((8, 24, 4))}, 1)])"
    if kind == "transposed":
        return f"TileLayout(S[({rows}, {columns}) : (1, {rows + r.choice((0, 8))})])"
    if kind == "torn":  # the two neighbours of a lane aren't neighbours
        return f"TileLayout(S[({rows}, {columns // 2}, 2) : ({columns}, 1, {columns // 2})])"
    if kind == "swizzled":
        chunk, bits = r.choice((3, 3, 3, 2, 4)), r.choice((1, 2, 3))
        inner = f"S[({rows}, {columns})]" if r.random() < 0.7 else f"S[({rows}, {columns}) : (1, {rows})]"
        return f"ComposeLayout({chunk}, {bits}, 3, tile=TileLayout({inner}))"
    if kind == "blocked":
        return f"TileLayout(S[({rows}, {columns // 8}, 8) : (8, {rows * 8}, 1)])"
    if kind == "offset":
        return f"TileLayout(S[({rows}, {columns})] + {r.choice((8, 16, 4))})"
    return f"TileLayout(S[({rows}, {columns})])"


def register_layout(r: random.Random) -> tuple[int, int, str, str, int]:
    """(rows, columns, layout, scope, threads) of a tile of matrix fragments, some in an unusual order."""
    m, n = 16 * r.choice((1, 2)), 16 * r.choice((1, 2, 4))
    kind = r.choice(("a", "c", "b", "b^T", "8x8", "swapped", "warps", "warps a", "copies", "plain", "warpgroup"))
    table = {
        "a": (m, n, f"mma_a({m}, {n})", "warp", 32),
        "c": (m, n, f"mma_c({m}, {n})", "warp", 32),
        "b": (n, m, f"mma_b({n}, {m})", "warp", 32),
        "b^T": (m, n, f"mma_b({n}, {m}, transposed=True)", "warp", 32),
        "8x8": (8, 8, "TileLayout(S[(8, 4, 2) : (4 @ laneid, 1 @ laneid, 1)])", "warp", 32),
        "swapped": (16, 8, "TileLayout(S[(2, 8, 4, 2) : (1, 4 @ laneid, 1 @ laneid, 2)])", "warp", 32),
        "warps": (2 * m, n, f"mma_c({2 * m}, {n}, warps=(2, 2))", "cta", 128),
        "warps a": (2 * m, n, f"mma_a({2 * m}, {n}, warps=(2, 2))", "cta", 128),
        "copies": (8, 8, "TileLayout(S[(8, 4, 2) : (4 @ laneid, 1 @ laneid, 1)] + R[2 : 1 @ warpid])", "cta", 64),
        "plain": (32, 8, "TileLayout(S[(32, 8) : (1 @ laneid, 1)])", "warp", 32),
        "warpgroup": (
            64, 8, "TileLayout(S[(4, 2, 8, 4, 2) : (1 @ wid_in_wg, 2, 4 @ laneid, 1 @ laneid, 1)])", "warpgroup", 128
        ),
    }  # fmt: skip
    return table[kind]


def _kernel(parameters: list[tuple[str, tuple[int, int], str]], threads: int, lines: list[str]) -> str:
    names = ", ".join(f"{name}_ptr: T.handle" for name, _, _ in parameters)
    matches = [f'{name} = T.match_buffer({name}_ptr, {shape}, "{type}")' for name, shape, type in parameters]
    body = "\n".join(f"    {line}" for line in lines)
    return (
        f"{IMPORT}@T.prim_func\ndef k({names}):\n    {'; '.join(matches)}\n"
        f"    T.device_entry(); T.cta_id([1]); tid = T.thread_id([{threads}])\n{body}\n"
    )


def matrix_copy(seed: int) -> str:
    """Global to shared memory, to fragments, to shared memory of another layout, and back."""
    r = random.Random(seed)
    rows, columns, layout, scope, threads = register_layout(r)
    type = r.choice((*HALVES, "float32", "int8"))
    before = f"TileLayout(S[({rows}, {columns})])" if type == "int8" else shared_layout(r, rows, columns)
    after = shared_layout(r, rows, columns)
    return _kernel(
        [("A", (rows, columns), type), ("B", (rows, columns), type)],
        threads,
        [
            f'X = T.alloc_shared(({rows}, {columns}), "{type}", layout={before})',
            f'Y = T.alloc_shared(({rows}, {columns}), "{type}", layout={after})',
            f'V = T.alloc_local(({rows}, {columns}), "{type}", layout={layout})',
            "Tx.cta.copy(X, A); T.cuda.cta_sync()",
            f"Tx.{scope}.copy(V, X); Tx.{scope}.copy(Y, V); T.cuda.cta_sync()",
            "Tx.cta.copy(B, Y)",
        ],
    )


def async_copy(seed: int) -> str:
    """Tiles of a matrix to shared memory, one or two on their way while another is read."""
    r = random.Random(seed)
    type = r.choice(("float32", "float16", "bfloat16", "float64", "int32", "int8"))
    bytes_ = {"float64": 8, "float32": 4, "int32": 4, "int8": 1}.get(type, 2)
    rows, columns = r.choice(((8, 32), (16, 16), (32, 8), (4, 48)))
    scope, threads = r.choice((("warp", 32), ("cta", 32), ("cta", 64), ("cta", 48), ("cta", 128), ("thread", 1)))
    stages, tiles = r.choice((1, 2, 3)), 4
    padding, start = r.choice((0, 0, 16 // bytes_)), r.choice((0, 0, 16 // bytes_, 4 // min(bytes_, 4)))
    chunk = {1: 4, 2: 3, 4: 2, 8: 1}[bytes_]
    layout = r.choice(
        (
            f"TileLayout(S[({stages}, {rows}, {columns}) : ({rows * (columns + padding)}, {columns + padding}, 1)])",
            f"ComposeLayout({chunk}, {r.choice((1, 2, 3))}, 3, tile=TileLayout(S[({stages}, {rows}, {columns})]))",
        )
    )
    left = r.randrange(stages)
    if r.random() < 0.5:
        left = stages - 1
    lines = [f'X = T.alloc_shared(({stages}, {rows}, {columns}), "{type}", layout={layout})']

    def fetch(tile: str, stage: str) -> str:
        source = f"A[{tile} * {rows} : {tile} * {rows} + {rows}, {start} : {start + columns}]"
        return f"Tx.{scope}.copy_async(X[{stage}, 0:{rows}, 0:{columns}], {source})"

    for tile in range(stages - 1):
        lines += [fetch(str(tile), str(tile)), "T.ptx.cp_async.commit_group()"]
    lines += [
        f"for i in range({tiles}):",
        f"    if i + {stages - 1} < {tiles}:",
        f"        {fetch(f'(i + {stages - 1})', f'(i + {stages - 1}) % {stages}')}",
        "    T.ptx.cp_async.commit_group()",
        f"    T.ptx.cp_async.wait_group({left})",
        "    T.cuda.cta_sync()",
        f"    Tx.cta.copy(B[i * {rows} : i * {rows} + {rows}, 0:{columns}], X[i % {stages}, 0:{rows}, 0:{columns}])",
        "    T.cuda.cta_sync()",
    ]
    return _kernel([("A", (tiles * rows, 96), type), ("B", (tiles * rows, columns), type)], threads, lines)


def product(seed: int) -> str:
    """A product of matrices that go through shared memory, by one warp or several."""
    r = random.Random(seed)
    m, n, k = 16 * r.choice((1, 1, 2)), 8 * r.choice((1, 2, 3)), 16 * r.choice((1, 2, 3))
    rows, columns = r.choice(((1, 1), (1, 1), (2, 1), (1, 2), (2, 2)))
    m, n = m * rows, n * columns
    warps = "" if (rows, columns) == (1, 1) else f", warps=({rows}, {columns})"
    scope = "warp" if not warps else "cta"
    type = r.choice(("float16", "bfloat16"))
    ta, tb = r.random() < 0.3, r.random() < 0.5
    shape_a, shape_b = (k, m) if ta else (m, k), (n, k) if tb else (k, n)
    kind = r.choice(("zero", "in place", "added"))
    flags = (", transpose_a=True" if ta else "") + (", transpose_b=True" if tb else "")
    call = {"zero": "gemm(D, V, W", "in place": "gemm(D, V, W, beta=1.0", "added": "gemm(D, V, W, E"}[kind]
    lines = [
        f'X = T.alloc_shared({shape_a}, "{type}", layout={_rows_together(r, *shape_a)})',
        f'Y = T.alloc_shared({shape_b}, "{type}", layout={_rows_together(r, *shape_b)})',
        f'V = T.alloc_local({shape_a}, "{type}", layout=mma_a({m}, {k}{", transposed=True" if ta else ""}{warps}))',
        f'W = T.alloc_local({shape_b}, "{type}", layout=mma_b({k}, {n}{", transposed=True" if tb else ""}{warps}))',
        f'D = T.alloc_local(({m}, {n}), "float32", layout=mma_c({m}, {n}{warps}))',
        f'E = T.alloc_local(({m}, {n}), "float32", layout=mma_c({m}, {n}{warps}))',
        f"Tx.{scope}.copy(D, C); Tx.{scope}.copy(E, C)",
        "Tx.cta.copy(X, A); Tx.cta.copy(Y, B); T.cuda.cta_sync()",
        f"Tx.{scope}.copy(V, X); Tx.{scope}.copy(W, Y)",
        f"Tx.{scope}.{call}{flags})",
        f"Tx.{scope}.copy(C, D)",
    ]
    return _kernel([("A", shape_a, type), ("B", shape_b, type), ("C", (m, n), "float32")], 32 * rows * columns, lines)


def _rows_together(r: random.Random, rows: int, columns: int) -> str:
    return r.choice(
        (
            f"TileLayout(S[({rows}, {columns})])",
            f"TileLayout(S[({rows}, {columns}) : ({columns + 8}, 1)])",
            f"ComposeLayout(3, 1, 3, tile=TileLayout(S[({rows}, {columns})]))",
        )
    )


def relayout(seed: int) -> str:
    """A tile of shared memory into another layout, in place or into other memory."""
    r = random.Random(seed)
    type = r.choice(("float32", "float16", "int8", "float64", "int32"))
    rows, columns = r.choice(((32, 32), (16, 16), (8, 64), (64, 8), (32, 24), (4, 8)))

    def layout() -> str:
        kind = r.choice(("rows", "columns", "padded", "swizzled", "blocked"))
        if kind == "columns":
            return f"TileLayout(S[({rows}, {columns}) : (1, {rows})])"
        if kind == "padded":
            return f"TileLayout(S[({rows}, {columns}) : ({columns + 1}, 1)])"
        if kind == "swizzled":
            return f"ComposeLayout({r.choice((0, 1, 2, 3))}, 3, 3, tile=TileLayout(S[({rows}, {columns})]))"
        if kind == "blocked":
            return f"TileLayout(S[({rows}, {columns // 8}, 8) : (8, {rows * 8}, 1)])"
        return f"TileLayout(S[({rows}, {columns})])"

    second = "M" if r.random() < 0.5 else "N"
    return _kernel(
        [("A", (rows, columns), type), ("B", (rows, columns), type)],
        32,
        [
            f'M = T.alloc_shared(1536, "{type}"); N = T.alloc_shared(1536, "{type}")',
            f"X = M.view({rows}, {columns}, layout={layout()})",
            f"Y = {second}.view({rows}, {columns}, layout={layout()})",
            "Tx.warp.copy(X, A); T.cuda.warp_sync()",
            "Tx.warp.permute_layout(Y, X)",
            "Tx.warp.copy(B, Y)",
        ],
    )


_LANES = {"m": (4, 8, 16), "k": (1, 2), "n of b": (4, 8, 16), "n of c": (0, 1, 2)}


def _dims(r: random.Random, registers: dict[str, int]) -> dict[str, list[tuple[int, int]]]:
    """Each dim's factors in any order, as (extent, lane; 0 for a register); n's of b and c in the same order."""
    found = {name: [(2, lane) for lane in _LANES[name]] + [(2, 0)] * registers[name] for name in ("m", "k")}
    for factors in found.values():
        r.shuffle(factors)
    order = [0, 1, 2]
    r.shuffle(order)
    at = r.randrange(4)
    for name in ("n of b", "n of c"):
        factors = [(2, _LANES[name][i]) for i in order]
        found[name] = [*factors[:at], (registers["n"], 0), *factors[at:]]
    return found


def _any_order(r: random.Random, factors: list[tuple[int, int]]) -> str:
    """A layout of these factors whose registers are counted in any order."""
    order = [i for i, (_, lane) in enumerate(factors) if not lane]
    r.shuffle(order)
    strides, stride = dict[int, int](), 1
    for i in order:
        strides[i], stride = stride, stride * factors[i][0]
    steps = [f"{lane} @ laneid" if lane else str(strides[i]) for i, (_, lane) in enumerate(factors)]
    return f"TileLayout(S[({', '.join(str(e) for e, _ in factors)}) : ({', '.join(steps)})])"


def shuffled_product(seed: int) -> tuple[str, bool, bool, bool]:
    """A product of fragments in an order of rows, columns, k and registers that no table has; whether a and b are
    transposed, and whether c is added to what is there."""
    r = random.Random(seed)
    registers = {"m": r.choice((1, 2)), "k": r.choice((2, 3)), "n": r.choice((1, 2, 3))}
    dims = _dims(r, registers)
    m, k, n = 8 << registers["m"], 4 << registers["k"], 8 * registers["n"]
    ta, tb = r.random() < 0.4, r.random() < 0.4
    layouts = {
        "a": dims["k"] + dims["m"] if ta else dims["m"] + dims["k"],
        "b": dims["n of b"] + dims["k"] if tb else dims["k"] + dims["n of b"],
        "c": dims["m"] + dims["n of c"],
        "d": dims["m"] + dims["n of c"],
    }
    shapes = {"a": (k, m) if ta else (m, k), "b": (n, k) if tb else (k, n), "c": (m, n), "d": (m, n)}
    type = r.choice(("float16", "bfloat16"))
    call, adds = r.choice(
        (("c, a, b", False), ("c, a, b, beta=1.0", True), ("c, a, b, d", True), ("c, a, b, d, beta=0.0", False))
    )
    types = {"a": type, "b": type, "c": "float32", "d": "float32"}
    lines = [
        f'{name} = T.alloc_local({shapes[name]}, "{types[name]}", layout={_any_order(r, layouts[name])})'
        for name in layouts
    ]
    lines += [
        "Tx.warp.copy(a, A); Tx.warp.copy(b, B); Tx.warp.copy(c, C); Tx.warp.copy(d, C)",
        f"Tx.warp.gemm({call}, transpose_a={ta}, transpose_b={tb})",
        "Tx.warp.copy(C, c)",
    ]
    return _kernel([(name.upper(), shapes[name], types[name]) for name in "abc"], 32, lines), ta, tb, adds
