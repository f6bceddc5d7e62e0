"""The emitters for CPUs against XLA:CPU (through jax), and torch and numpy where they have the function.

    python bench/heroes.py                      all cases, memory warm for both sides
    python bench/heroes.py transpose --preload FILE.c    cases whose name holds a word; a library that keeps blocks warm

Calls of all sides alternate, one by one; times are the least of many.  All sides read the same arrays.  Reductions are
compared with this machine's own read bandwidth, measured between the calls: a plain loop that reads the array and
nothing else.  `run_time` says what `warm` means.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from run_time import KEEP, built

_ADD = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }"


@dataclass(frozen=True, slots=True)
class Hero:
    """A module and its twins.  `goal`: the most of jax's time; `read_goal`: the least part of the read bandwidth.

    `donated`: the first parameter's memory is given away, and the call is repeated on its own result.
    `copies`: the result has the bytes of the inputs, so a plain copy of as many is the yardstick.
    """

    name: str
    text: str
    jax: Callable[[Any, Any], Callable[..., Any]]
    goal: float | None = None
    read_goal: float | None = None
    numpy: Callable[..., Any] | None = None
    torch: Callable[[Any], Callable[..., Any]] | None = None
    donated: bool = False
    copies: bool = False
    limits: tuple[int, int] = (0, 1)  # of integer inputs


def _entry(lines: str, header: str = "") -> str:
    return f"HloModule bench{header}\n{_ADD}\nENTRY main {{\n{lines}\n}}\n"


def _transpose(dtype: str, dims: tuple[int, ...], order: tuple[int, ...], goal: float | None = None) -> Hero:
    given, made = (",".join(map(str, d)) for d in (dims, [dims[d] for d in order]))
    places = ",".join(map(str, order))
    return Hero(
        f"transpose {dtype}[{given}] {places}",
        _entry(
            f"  p = {dtype}[{given}] parameter(0)\n  ROOT t = {dtype}[{made}] transpose(p), dimensions={{{places}}}"
        ),
        lambda jax, lax: lambda x: lax.transpose(x, order),
        goal,
        numpy=lambda x: x.transpose(order).copy(),
        torch=lambda torch: lambda x: x.permute(order).contiguous(),
    )


def _reduce(dtype: str, dims: tuple[int, ...], reduced: tuple[int, ...], read_goal: float | None = None) -> Hero:
    given = ",".join(map(str, dims))
    made = ",".join(str(n) for d, n in enumerate(dims) if d not in reduced)
    places = ",".join(map(str, reduced))
    reducer = _ADD.replace("f32", dtype).replace("add {", "add_own {")
    return Hero(
        f"sum {dtype}[{given}] over {places}",
        _entry(
            f"  p = {dtype}[{given}] parameter(0)\n  z = {dtype}[] constant(0)\n"
            f"  ROOT r = {dtype}[{made}] reduce(p, z), dimensions={{{places}}}, to_apply=add_own"
        ).replace("ENTRY", f"{reducer}\nENTRY"),
        lambda jax, lax: lambda x: jax.numpy.sum(x, axis=reduced, dtype=x.dtype),
        read_goal=read_goal,
        numpy=lambda x: x.sum(axis=reduced),
        torch=lambda torch: lambda x: x.sum(dim=reduced),
    )


def _argmax(dims: tuple[int, int], axis: int) -> Hero:
    given, kept = f"{dims[0]},{dims[1]}", dims[1 - axis]
    text = f"""HloModule bench
largest {{
  a = f32[] parameter(0)  i = s32[] parameter(1)  b = f32[] parameter(2)  j = s32[] parameter(3)
  g = pred[] compare(a, b), direction=GT  e = pred[] compare(a, b), direction=EQ
  l = pred[] compare(i, j), direction=LT  t = pred[] and(e, l)  k = pred[] or(g, t)
  m = f32[] select(k, a, b)  n = s32[] select(k, i, j)
  ROOT r = (f32[], s32[]) tuple(m, n)
}}
ENTRY main {{
  p = f32[{given}] parameter(0)
  i = s32[{given}] iota(), iota_dimension={axis}
  z = f32[] constant(-inf)
  k = s32[] constant(0)
  ROOT r = (f32[{kept}], s32[{kept}]) reduce(p, i, z, k), dimensions={{{axis}}}, to_apply=largest
}}
"""
    return Hero(
        f"argmax f32[{given}] over {axis}",
        text,
        lambda jax, lax: lambda x: (jax.numpy.max(x, axis), jax.numpy.argmax(x, axis).astype(jax.numpy.int32)),
        numpy=lambda x: (x.max(axis), x.argmax(axis)),
    )


def _concatenate(goal: float) -> Hero:
    sizes = (1000, 2500, 700)
    parameters = "\n".join(f"  p{i} = f32[4096,{n}] parameter({i})" for i, n in enumerate(sizes))
    return Hero(
        "concatenate f32[4096, 1000 2500 700] along 1",
        _entry(f"{parameters}\n  ROOT c = f32[4096,{sum(sizes)}] concatenate(p0, p1, p2), dimensions={{1}}"),
        lambda jax, lax: lambda *xs: lax.concatenate(xs, 1),
        goal,
        numpy=lambda *xs: __import__("numpy").concatenate(xs, 1),
        torch=lambda torch: lambda *xs: torch.cat(xs, 1),
        copies=True,
    )


def _slices() -> Hero:
    return Hero(
        "three slices of f32[4096,4096]",
        """HloModule bench
body {
  p = f32[4096,4096] parameter(0)
  a = f32[4096,1000] slice(p), slice={[0:4096], [0:1000]}
  b = f32[4096,2000] slice(p), slice={[0:4096], [1000:3000]}
  c = f32[4096,1096] slice(p), slice={[0:4096], [3000:4096]}
  ROOT t = (f32[4096,1000], f32[4096,2000], f32[4096,1096]) tuple(a, b, c)
}
ENTRY main {
  p = f32[4096,4096] parameter(0)
  ROOT f = (f32[4096,1000], f32[4096,2000], f32[4096,1096]) fusion(p), kind=kInput, calls=body
}
""",
        lambda jax, lax: lambda x: (x[:, :1000], x[:, 1000:3000], x[:, 3000:]),
        numpy=lambda x: (x[:, :1000].copy(), x[:, 1000:3000].copy(), x[:, 3000:].copy()),
    )


def _scatter(count: int, size: int, window: int, goal: float | None) -> Hero:
    row = "" if window == 1 else f",{window}"
    dims = "update_window_dims={1}" if window > 1 else "update_window_dims={}"
    return Hero(
        f"scatter-add of {count} x {window} into {size}",
        _entry(
            f"  p = f32[{size}{row}] parameter(0)\n  i = s32[{count},1] parameter(1)\n"
            f"  u = f32[{count}{row}] parameter(2)\n"
            f"  ROOT s = f32[{size}{row}] scatter(p, i, u), {dims}, inserted_window_dims={{0}}, "
            "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add"
        ),
        lambda jax, lax: lambda p, i, u: p.at[i[:, 0]].add(u),
        goal,
        numpy=lambda p, i, u: __import__("numpy").add.at(p.copy(), i[:, 0], u),
        limits=(0, size),
    )


def _update(goal: float) -> Hero:
    return Hero(
        "update of f32[1024,1024] in f32[8192,8192], in place",
        _entry(
            "  p = f32[8192,8192] parameter(0)\n  u = f32[1024,1024] parameter(1)\n"
            "  i = s32[] parameter(2)\n  j = s32[] parameter(3)\n"
            "  ROOT d = f32[8192,8192] dynamic-update-slice(p, u, i, j)",
            ", input_output_alias={ {}: (0, {}, may-alias) }",
        ),
        lambda jax, lax: lambda p, u, i, j: lax.dynamic_update_slice(p, u, (i, j)),
        goal,
        donated=True,
        limits=(100, 101),
    )


HEROES = [
    _transpose("f32", (8192, 8192), (1, 0), 0.4),
    _transpose("bf16", (8192, 8192), (1, 0), 0.4),
    _transpose("s8", (8192, 8192), (1, 0), 0.4),
    _transpose("f64", (4096, 4096), (1, 0)),
    _transpose("f32", (20, 160, 170), (2, 1, 0), 0.8),
    _transpose("f32", (8191, 4099), (1, 0)),
    _transpose("f32", (64, 512, 512), (0, 2, 1)),
    _reduce("f32", (8192, 8192), (1,), 0.9),
    _reduce("f32", (8192, 8192), (0,), 0.9),
    _reduce("f32", (8192, 8192), (0, 1), 0.9),
    _reduce("bf16", (8192, 8192), (1,), 0.9),
    _reduce("f32", (1 << 20, 32), (1,)),
    _reduce("f32", (1 << 20, 32), (0,)),
    _reduce("f32", (1 << 22, 4), (0,)),
    _argmax((8192, 4096), 1),
    _argmax((8192, 4096), 0),
    _concatenate(0.7),
    _slices(),
    _scatter(1 << 20, 1 << 20, 1, 0.8),
    _scatter(1 << 20, 1 << 16, 1, 0.8),
    _scatter(1 << 14, 1 << 14, 256, None),
    _update(0.9),
]

_READ = """
define void @read(ptr %argv, i64 %begin, i64 %end) {
entry:
  %q = getelementptr ptr, ptr %argv, i64 1
  %in = load ptr, ptr %argv
  %out = load ptr, ptr %q
  %lo = mul i64 %begin, 65536
  %hi = mul i64 %end, 65536
  br label %loop
loop:
  %i = phi i64 [%lo, %entry], [%next, %loop]
  %s = phi <32 x i32> [zeroinitializer, %entry], [%t, %loop]
  %a = getelementptr i8, ptr %in, i64 %i
  %x = load <32 x i32>, ptr %a, align 4
  %t = or <32 x i32> %s, %x
  %next = add i64 %i, 128
  %more = icmp slt i64 %next, %hi
  br i1 %more, label %loop, label %exit
exit:
  %o = getelementptr <32 x i32>, ptr %out, i64 %begin
  store <32 x i32> %t, ptr %o, align 4
  ret void
}
"""


def reader(array: Any) -> Callable[[], None]:
    """A call that reads the array once, on all cores."""
    import numpy as np

    from warpsmith.runtime.buffers import pointer
    from warpsmith.runtime.cpu_executable import ArgSpec, CpuKernel, load_kernels

    groups = array.nbytes // 65536
    (code,) = load_kernels([_READ])
    kernel = CpuKernel(code, "read", groups, [ArgSpec(4), ArgSpec(4)])
    out = np.zeros((groups, 32), np.int32)

    def read() -> None:
        kernel.launch([pointer(array), pointer(out)])

    return read


def measure(case: Hero, seconds: float, others: bool) -> bool:
    """One line of the table; whether the goal was reached."""
    import jax
    import numpy as np
    from jax import lax

    import warpsmith as ws
    from warpsmith.runtime.copies import copied

    jax.config.update("jax_enable_x64", True)
    module = ws.parse_hlo(case.text)
    exe = ws.compile(module)
    random = np.random.default_rng(0)
    arrays: list[Any] = []
    for parameter in module.entry.parameters:
        shape = parameter.array_shape
        if shape.dtype.is_integer and shape.dtype.bits >= 32:
            arrays.append(random.integers(*case.limits, shape.dims, shape.dtype.numpy))
        else:
            values = random.standard_normal(shape.dims, dtype=np.float32) * (40 if shape.dtype.name == "s8" else 1)
            arrays.append(values.astype(shape.dtype.numpy))
    inputs = [jax.device_put(each) for each in arrays]
    arrays = [np.asarray(each) for each in inputs]
    donate = (0,) if case.donated else ()
    jitted = jax.jit(case.jax(jax, lax), donate_argnums=donate).lower(*inputs).compile()
    state = {"ours": np.array(arrays[0]), "jax": jax.device_put(np.array(arrays[0]))}

    def ours() -> Any:
        if case.donated:
            (state["ours"],) = exe(state["ours"], *arrays[1:], donate=True)
            return state["ours"]
        return exe(*arrays)

    def theirs() -> Any:
        if case.donated:
            state["jax"] = jitted(state["jax"], *inputs[1:]).block_until_ready()
            return state["jax"]
        return jax.block_until_ready(jitted(*inputs))

    check(case, ours(), theirs())
    sides: dict[str, Callable[[], Any]] = {"ours": ours, "jax": theirs}
    if case.read_goal is not None:
        sides["read"] = reader(arrays[0])
    if case.copies:
        whole = np.empty(sum(each.nbytes for each in arrays), np.uint8)
        sides["copy"] = lambda: copied(whole)
    if others and case.numpy is not None:
        twin = case.numpy
        sides["numpy"] = lambda: twin(*arrays)
    if others and case.torch is not None:
        sides |= torch_side(case, arrays)
    best = alternate(sides, seconds)
    ratio = best["ours"] / best["jax"]
    notes = [f"{name} {best[name] * 1e3:.3f}" for name in ("numpy", "torch") if name in best]
    missed = case.goal is not None and ratio > case.goal
    goal = "" if case.goal is None else f"{case.goal:.2f}"
    if case.read_goal is not None:
        part = best["read"] / best["ours"]
        missed |= part < case.read_goal
        notes.insert(0, f"{part:.0%} of read bandwidth {arrays[0].nbytes / best['read'] / 1e9:.1f} GB/s")
    if case.copies:
        notes.insert(0, f"{best['copy'] / best['ours']:.0%} of a plain copy's speed")
    kinds = ", ".join(f"{k.emitter}.{k.variant}".rstrip(".") if not k.host else f"host {k.opcode}" for k in exe.kernels)
    print(
        f"{case.name:52} {kinds:22} {best['ours'] * 1e3:9.3f} ms {best['jax'] * 1e3:9.3f} ms {ratio:6.3f} {goal:>5}"
        f"{' MISSED' * missed}  {'; '.join(notes)}",
        flush=True,
    )
    return not missed


def alternate(sides: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """The least time of each side, calls one by one in turn."""
    best = dict.fromkeys(sides, float("inf"))
    for side in sides.values():
        side()
    end = perf_counter() + seconds
    rounds = 0
    while rounds < 5 or perf_counter() < end:
        for name, side in sides.items():
            start = perf_counter()
            result = side()
            best[name] = min(best[name], perf_counter() - start)
            del result
        rounds += 1
    return best


def torch_side(case: Hero, arrays: Sequence[Any]) -> dict[str, Callable[[], Any]]:
    """The same in torch, where it is installed and knows the arrays' types."""
    try:
        import torch
    except ImportError:
        return {}
    try:
        tensors = [torch.from_numpy(each.copy()) for each in arrays]
    except TypeError:
        return {}
    assert case.torch is not None
    twin = case.torch(torch)
    return {"torch": lambda: twin(*tensors)}


def check(case: Hero, ours: Any, theirs: Any) -> None:
    """Both sides must have computed the same function: a benchmark of something else is worth nothing."""
    import numpy as np

    mine = ours if isinstance(ours, list | tuple) else [ours]
    others = theirs if isinstance(theirs, list | tuple) else [theirs]
    for a, b in zip(mine, others, strict=True):
        wide = np.asarray(b).astype(np.float64)
        loose = 1e-4 if a.dtype.itemsize >= 4 else 5e-2
        if not np.allclose(a.astype(np.float64), wide, rtol=loose, atol=loose * max(1.0, float(np.abs(wide).max()))):
            raise SystemExit(f"{case.name}: the results differ")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD", help="only cases whose name holds one of these")
    parser.add_argument("--preload", metavar="FILE", help="an allocator that keeps blocks: a library, or C source")
    parser.add_argument("--seconds", type=float, default=2.0, help="time for a case (default: 2)")
    parser.add_argument("--others", action="store_true", help="numpy and torch as well")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(f"{len(os.sched_getaffinity(0))} cores; blocks kept warm; least of alternating calls", flush=True)
        print(f"{'case':52} {'emitter':22} {'warpsmith':>12} {'jax':>12} {'ratio':>6} {'goal':>5}", flush=True)
        chosen = [c for c in HEROES if not arguments.words or any(w in c.name for w in arguments.words)]
        reached = [measure(each, arguments.seconds, arguments.others) for each in chosen]
        return 0 if all(reached) else 1
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
        if arguments.preload:
            environment |= {"LD_PRELOAD": built(arguments.preload, folder)}
        else:
            environment |= {"GLIBC_TUNABLES": KEEP}
        return subprocess.run([sys.executable, *sys.argv, "--child"], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
