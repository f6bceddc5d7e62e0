"""Compile time, from HLO text to machine code or PTX, cache off, in a warm process; against XLA where it can be had.

    python bench/compile_time.py                 all tables
    python bench/compile_time.py gelu many       some: gelu, many, growth, import
    python bench/compile_time.py --profile gelu  where the time goes, by function

gelu    the first compilation of that module in a process that has compiled others, with its parts
many    one module of 100 different fusions, on the cores there are
growth  one fusion of 100 to 5,000 ops: the time for each op should stay what it is
import  `import warpsmith` against `import numpy`, and the command line's start
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from cases import chain_text, diamond_text, gelu_text, many_fusions

import warpsmith as ws
from warpsmith.backends.llvm import isolate as llvm_isolate

_TARGETS = ("cpu", "sm_90")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tables: dict[str, Callable[[argparse.Namespace], int]] = {
        "gelu": gelu,
        "many": many,
        "growth": growth,
        "import": imports,
    }
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(tables)}")
    parser.add_argument("--no-xla", action="store_true", help="don't compile with XLA")
    parser.add_argument("--repeat", type=int, default=5, help="compilations of each kind (default: 5)")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.tables if name not in tables]
    if unknown:
        parser.error(f"no table is called {', '.join(unknown)}")
    missed = 0
    for name in arguments.tables or tables:
        print()
        if arguments.profile:
            profile = cProfile.Profile()
            profile.enable()
            tables[name](arguments)
            profile.disable()
            pstats.Stats(profile).sort_stats("tottime").print_stats(40)
        else:
            missed += tables[name](arguments)
        sys.stdout.flush()
    return 1 if missed else 0


def compile_text(text: str, target: str) -> tuple[float, dict[str, float]]:
    """Seconds from text to code, and the parts."""
    start = perf_counter()
    module = ws.parse_hlo(text)
    parsed = perf_counter() - start
    exe = ws.compile(module, target, cache=False)
    return perf_counter() - start, {"parse": parsed, **exe.timings}


def show(name: str, seconds: float, parts: dict[str, float], goal: float | None) -> int:
    listed = "  ".join(f"{part} {value * 1e3:.1f}" for part, value in parts.items())
    late = goal is not None and seconds > goal
    wanted = "" if goal is None else f"(goal {goal * 1e3:.0f}{', MISSED' if late else ''})"
    print(f"{name:34} {seconds * 1e3:9.1f} ms {wanted:>18}   {listed}", flush=True)
    return late


def warm_up(target: str) -> None:
    """Other modules first, so that imports, pass tables and LLVM's own start are done."""
    compile_text(chain_text(3), target)
    compile_text(chain_text(4, "bf16"), target)


def gelu(arguments: argparse.Namespace) -> int:
    """Each compilation is of another shape, so that no memo of ours can know it."""
    print("GELU, text to code, cache off: median of the first compilation of each of several shapes")
    missed = 0
    for target in _TARGETS:
        warm_up(target)
        for dtype in ("bf16", "f32"):
            found = [compile_text(gelu_text(dtype, (6, 512 + 32 * i, 4096)), target) for i in range(arguments.repeat)]
            seconds, parts = sorted(found, key=lambda each: each[0])[len(found) // 2]
            missed += show(f"{dtype} for {target} (first {found[0][0] * 1e3:.1f})", seconds, parts, 0.060)
    if not arguments.no_xla:
        lines = [
            f"gelu {dtype} (6, {512 + 32 * i}, 4096)" for dtype in ("bf16", "f32") for i in range(arguments.repeat)
        ]
        seconds = xla_seconds(lines)
        for i, dtype in enumerate(("bf16", "f32")):
            part = seconds[i * arguments.repeat : (i + 1) * arguments.repeat]
            print(f"{dtype + ' by XLA:CPU':34} {statistics.median(part) * 1e3:9.1f} ms")
    return missed


def many(arguments: argparse.Namespace) -> int:
    print("100 different fusions in one module (half f32, half bf16), text to code, cache off")
    missed = 0
    for target in _TARGETS:
        warm_up(target)
        text = many_fusions(100)
        missed += show(f"for {target}, no worker yet", *compile_text(text, target), 2.5)
        missed += show(f"for {target}, again", *compile_text(text, target), 2.5)
        llvm_isolate.stop_workers()
    if not arguments.no_xla:
        (seconds,) = xla_seconds(["many"])
        print(f"{'by XLA:CPU':34} {seconds * 1e3:9.1f} ms")
    return missed


def growth(arguments: argparse.Namespace) -> int:
    print("one fusion of n f32 ops: ms, and us an op")
    print(f"{'':14}" + "".join(f"{n:>20,}" for n in _SIZES))
    missed = 0
    for target in _TARGETS:
        warm_up(target)
        for name, make in (("chain", chain_text), ("diamonds", diamond_text)):
            times = [compile_text(make(n), target)[0] for n in _SIZES]
            cells = [f"{t * 1e3:9.1f} ms {t * 1e6 / n:5.0f} us" for n, t in zip(_SIZES, times, strict=True)]
            print(f"{name + ' ' + target:14}" + "".join(f"{cell:>20}" for cell in cells), flush=True)
            missed += times[-1] / _SIZES[-1] > 2 * times[1] / _SIZES[1]
    return missed


_SIZES = (100, 500, 1000, 2000, 5000)


def imports(arguments: argparse.Namespace) -> int:
    """Medians of fresh interpreters with bytecode at hand, as installed packages have it."""
    rounds = max(7, arguments.repeat)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "gelu.hlo")
        file.write_text(gelu_text("bf16", (6, 512, 4096)), encoding="utf-8")
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(Path(folder, "bytecode"))
        return _start_times(rounds, str(file), environment)


def _start_times(rounds: int, file: str, environment: dict[str, str]) -> int:
    commands = {
        "nothing": ["-c", "pass"],
        "numpy": ["-c", "import numpy"],
        "warpsmith": ["-c", "import warpsmith"],
        "help": ["-m", "warpsmith", "--help"],
        "compile": ["-m", "warpsmith", "compile", "--target", "sm_90", "--stage", "ptx", "-o", os.devnull, file],
        "run": ["-m", "warpsmith", "run", "--reference", "none", file],
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(1 + rounds):
        for name, command in commands.items():
            start = perf_counter()
            subprocess.run([sys.executable, *command], stdout=subprocess.DEVNULL, check=True, env=environment)
            if number:  # the first writes the bytecode
                seconds[name].append(perf_counter() - start)
    times = {name: statistics.median(each) for name, each in seconds.items()}
    for name in ("numpy", "warpsmith"):
        print(f"import {name:27} {(times[name] - times['nothing']) * 1e3:9.1f} ms")
    extra = times["warpsmith"] - times["numpy"]
    print(f"more than numpy                    {extra * 1e3:9.1f} ms   (goal 40)")
    for name, command in list(commands.items())[3:]:
        print(f"python {' '.join(command).replace(file, 'gelu.hlo')[:70]:70} {times[name] * 1e3:9.1f} ms in all")
    return extra > 0.040


# ------------------------------------------------------------------------------------------------------- XLA's side
def xla_seconds(jobs: list[str]) -> list[float]:
    """Seconds that XLA:CPU takes for each job, in one process of its own."""
    command = [sys.executable, __file__, "--no-xla", "gelu"]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "WARPSMITH_BENCH_XLA": ";".join(jobs)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [float(line) for line in done.stdout.split()]


def _xla_side(jobs: list[str]) -> None:
    """HLO text through jaxlib's own parser and compiler: the same work as ours."""
    xla_text(chain_text(3))
    for job in jobs:
        if job == "many":
            print(xla_text(many_fusions(100)))
        else:
            _, dtype, shape = job.split(" ", 2)
            print(xla_text(gelu_text(dtype, tuple(int(d) for d in shape.strip("()").split(",")))))


def xla_text(text: str) -> float:
    import jax
    from jax._src.lib import xla_client
    from jaxlib import _hlo

    client: Any = jax.devices()[0].client
    binding: Any = xla_client._xla
    devices = binding.DeviceList(tuple(jax.devices()[:1]))
    start = perf_counter()
    module = _hlo.hlo_module_from_text(text)
    computation = _hlo.XlaComputation(module.as_serialized_hlo_module_proto())
    mlir = binding.mlir.xla_computation_to_mlir_module(computation)
    client.compile_and_load(mlir, devices, xla_client.CompileOptions())
    return perf_counter() - start


if __name__ == "__main__":
    asked = os.environ.get("WARPSMITH_BENCH_XLA")
    if asked is not None:
        _xla_side(asked.split(";"))
        sys.exit(0)
    sys.exit(main())
