"""Random tile programs: layouts x scopes x element types x shapes x guards, for every primitive.

`GENERATORS[kind](seed)` gives the text of a kernel.  The check is that the dispatched kernel in the simulator agrees
with the meaning of its primitives, or that dispatch says why no lowering takes it.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.tile.random_elementwise import elementwise_program
from tests.tile.random_layouts import DTYPES, SCOPES, memory_layout, register_tile, scope_threads
from tests.tile.random_reductions import reduction_program
from tests.tile.random_text import SHAPES, Around, indented, kernel, shared, sync_of


# --------------------------------------------------------------------------------------------------------------- copies
def copy_program(seed: int) -> str:
    """Global memory, through one to three tiles in shared memory and registers, to global memory."""
    r = random.Random(seed)
    if r.random() < 0.15:
        return _own_copies(r)
    scope, block = r.choice(SCOPES)
    dtype = r.choice(DTYPES)
    threads = scope_threads(scope, block)
    places = r.choice((("local",), ("shared",), ("shared", "local"), ("local", "shared"), ("shared", "shared"),
                       ("shared", "local", "shared"), ("local", "local")))  # fmt: skip
    tile = register_tile(r, scope, threads, rank=r.choice((1, 2, 2, 3)))
    shape = tile.shape if "local" in places else r.choice(SHAPES)
    lines: list[str] = []
    at = Around(r, shape)
    previous = at.of("A")
    if scope == "warpgroup" and block == 256:
        lines.append("if tid < 128:")
    for number, place in enumerate(places):
        name = f"X{number}"
        if place == "local":
            again = register_tile(random.Random(seed + 1), scope, threads, rank=len(shape))
            chosen = again if number and places[0] == "local" and again.shape == shape and r.random() < 0.5 else tile
            lines.insert(0, chosen.allocation(name, dtype))
            here = name
        else:
            around = Around(r, shape, 0.3)
            lines.insert(0, shared(r, name, around.shape, dtype))
            here = around.of(name)
        lines += indented(lines, [f"Tx.{scope}.copy({here}, {previous})", sync_of(scope) if place == "shared" else ""])
        previous = here
    out = Around(r, shape)
    lines += indented(lines, [f"Tx.{scope}.copy({out.of('B')}, {previous})"])
    layouts = [memory_layout(r, a.shape, dtype, swizzles=False) if r.random() < 0.3 else "" for a in (at, out)]
    return kernel(lines, [("A", at.shape, dtype, layouts[0]), ("B", out.shape, dtype, layouts[1])], block)


def _own_copies(r: random.Random) -> str:
    """Each thread copies a row of its own, at thread scope, to registers and back, some of them by way of two tiles."""
    dtype, block, k = r.choice(DTYPES), r.choice((1, 32, 48, 64)), r.choice((1, 2, 3, 4, 8, 16))
    guard = r.choice(("", "", f"if tid < {max(block // 2, 1)}:", "if tid % 2 == 0:"))
    first = r.choice((0, 0, 1, 4))
    lines = [f'X = T.alloc_local(({k},), "{dtype}")', f'Y = T.alloc_shared(({block}, {k}), "{dtype}", '
             f"layout={memory_layout(r, (block, k), dtype)})", guard]  # fmt: skip
    calls = [f"Tx.copy(X, A[tid, {first} : {first} + {k}])"]
    if r.random() < 0.5:
        calls += [f"Tx.copy(Y[tid, 0:{k}], X)", f"Tx.copy(X, Y[tid, 0:{k}])"]
    calls.append(f"Tx.copy(B[tid, 0:{k}], X)")
    lines += indented(lines, calls)
    return kernel(lines, [("A", (block, k + first + 1), dtype, ""), ("B", (block, k), dtype, "")], block)


# --------------------------------------------------------------------------------------------------------------- guards
LANE_GUARDS = ("lane < 16", "tid % 2 == 0", "lane != 3", "not lane < 8", "lane >= 16 and lane < 24",
               "lane == 0 or lane == 31", "T.cuda.elect_sync()", "A[0, tid] > 2.0")  # fmt: skip
WARP_GUARDS = ("warp == 1", "warp != 0", "warp < 2", "tid < 64", "tid >= 32", "tid // 32 == 1", "lane >= 0",
               "warp == 0 or warp == 3", "warp % 2 == 1", "not warp == 2", "tid < 40 or tid >= 40")  # fmt: skip
UNIFORM_GUARDS = ("A[0, 0] > 2.0", "bx == 0", "flag > 1", "n > 2 and bx < 4", "A[0, 0] > 1.0 or A[0, 1] > 1.0")


def guarded_program(seed: int) -> str:
    """Calls of a scope under conditions on ids, on data, in branches, in loops."""
    r = random.Random(seed)
    scope = r.choice(("warp", "warp", "cta", "thread"))
    block = r.choice((64, 128))
    warps = block // 32
    k = r.choice((1, 2, 4))
    guard = r.choice(r.choice((LANE_GUARDS, WARP_GUARDS, UNIFORM_GUARDS)))
    if scope == "warp":
        layout = r.choice((f"S[(32, {k}) : (1 @ laneid, 1)]", f"S[(8, 4, {k}) : (4 @ laneid, 1 @ laneid, 1)]"))
        made = [f'X = T.alloc_buffer((32, {k}), "float32", scope="local", layout=TileLayout({layout}))']
        part = f"[warp * 32 : warp * 32 + 32, 0 : {k}]"
        call, tile = "Tx.warp", "X"
    elif scope == "cta":
        layout = f"S[({warps}, 32, {k}) : (1 @ warpid, 1 @ laneid, 1)]"
        made = [f'X = T.alloc_buffer(({block}, {k}), "float32", scope="local", layout=TileLayout({layout}))']
        part, call, tile = f"[0:{block}, 0:{k}]", "Tx.cta", "X"
    else:
        made = [f'X = T.alloc_local((1, {k}), "float32")']
        part, call, tile = f"[tid : tid + 1, 0:{k}]", "Tx", "X"
    steps = (f"add({tile}, {tile}, 1.0)", f"square({tile}, {tile})", f"copy({tile}, A{part})",
             f"maximum({tile}, {tile}, 2.0)")  # fmt: skip
    step = f"{call}.{r.choice(steps)}"
    other = f"{call}.mul({tile}, {tile}, 3.0)"
    form = r.choice(("if", "if", "else", "both", "nested", "for", "while", "break"))
    inner = r.choice((*WARP_GUARDS, *UNIFORM_GUARDS))
    turns = r.choice(("2", "flag", "warp + 1", "lane"))
    blocks = {
        "if": [f"if {guard}:", f"    {step}"],
        "else": [f"if {guard}:", "    y = 1.0", "else:", f"    {step}"],
        "both": [f"if {guard}:", f"    {step}", "else:", f"    {other}"],
        "nested": [f"if {guard}:", f"    if {inner}:", f"        {step}", "    else:", f"        {other}"],
        "for": ["for i in range(3):", f"    if {guard}:", f"        {step}"],
        "while": ["i = T.int32(0)", f"while i < {turns}:", f"    {step}", "    i = i + 1"],
        "break": ["for i in range(3):", f"    if i == 1 and {guard}:", "        break", f"    {step}"],
    }
    lines = ["lane = T.lane_id(); warp = T.warp_id()", *made, "y = 0.0", f"{call}.copy({tile}, A{part})"]
    lines += [*blocks[form], f"{call}.copy(B{part}, {tile})", "if tid == 0:", "    C[0] = y"]
    text = kernel(lines, [("A", (block, max(k, block)), "float32", ""), ("B", (block, k), "float32", ""),
                          ("C", (1,), "float32", "")], block)  # fmt: skip
    text = text.replace("C_ptr: T.handle", "C_ptr: T.handle, flag: T.int32, n: T.int32")
    return text.replace("T.cta_id([1])", "bx = T.cta_id([1])")


GENERATORS: dict[str, Callable[[int], str]] = {
    "copy": copy_program,
    "elementwise": elementwise_program,
    "reduction": reduction_program,
    "guard": guarded_program,
}
