"""How fast HLO text is read, verified, printed, hashed and edited, and how much memory that takes.

    python bench/hlo_speed.py [INSTRUCTIONS]      100,000 by default; also a tenth of it, to see the growth

The module is one long computation of element-wise ops, slices, transposes, broadcasts, reductions and fusions, with
metadata.  Exits with 1 when reading, verifying and printing 100,000 instructions take more than 8 s or 1 GB.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from warpsmith.hlo import HloInstruction, HloModule, parse_hlo, verify_module
from warpsmith.hlo.edit import replace
from warpsmith.hlo.query import fingerprint, statistics

MOST_SECONDS = 8.0
MOST_MEGABYTES = 1000
T = TypeVar("T")

HEAD = """HloModule big, entry_computation_layout={(f32[128,64]{1,0}, f32[128,64]{1,0})->f32[128,64]{1,0}}

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %r = f32[] add(%a, %b)
}

%square (p: f32[128,64]) -> f32[128,64] {
  %p = f32[128,64]{1,0} parameter(0)
  ROOT %s = f32[128,64]{1,0} multiply(%p, %p)
}

ENTRY %main (x: f32[128,64], y: f32[128,64]) -> f32[128,64] {
  %x = f32[128,64]{1,0} parameter(0)
  %y = f32[128,64]{1,0} parameter(1)
  %zero = f32[] constant(0)
"""
ROWS = (
    "add({0}, %y)",
    "tanh({0})",
    "multiply({0}, {0})",
    "fusion({0}), kind=kLoop, calls=%square",
    "slice({0}), slice={{[0:128], [0:64]}}",
    "maximum({0}, %y)",
    "clamp(%zero, {0}, %zero)",
    "transpose({0}), dimensions={{0,1}}",
)


def text_of(count: int) -> str:
    """A module with about `count` instructions, two in eight rows a reduction and its broadcast."""
    lines = [HEAD]
    last = "%x"
    index = 0
    while index < count - 9:
        for row in ROWS:
            where = f'metadata={{op_name="jit(step)/layer{index}" source_file="model.py" source_line={index}}}'
            lines.append(f"  %v{index} = f32[128,64]{{1,0}} {row.format(last)}, {where}\n")
            last = f"%v{index}"
            index += 1
        lines.append(f"  %v{index} = f32[128]{{0}} reduce({last}, %zero), dimensions={{1}}, to_apply=%add\n")
        lines.append(f"  %v{index + 1} = f32[128,64]{{1,0}} broadcast(%v{index}), dimensions={{0}}\n")
        last = f"%v{index + 1}"
        index += 2
    lines.append(f"  ROOT %out = f32[128,64]{{1,0}} negate({last})\n}}\n")
    return "".join(lines)


def timed(name: str, work: Callable[[], T]) -> tuple[T, float]:
    start = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - start
    print(f"  {name:<12} {seconds:8.3f} s")
    return result, seconds


def measure(count: int) -> float:
    """Seconds to read, verify and print."""
    text = text_of(count)
    print(f"{count:,} instructions, {len(text) / 1e6:.1f} MB of text")
    module, reading = timed("read", lambda: parse_hlo(text))
    _, verifying = timed("verify", lambda: verify_module(module))
    printed, printing = timed("print", lambda: str(module))
    assert parse_hlo(printed) == module
    timed("fingerprint", lambda: fingerprint(module))
    timed("statistics", lambda: statistics(module))

    def edit() -> HloModule:
        first = module.entry.instruction("v0")
        return replace(module, first, HloInstruction("new", "negate", first.shape, (module.entry.parameters[0],)))

    timed("replace", edit)
    total = reading + verifying + printing
    print(f"  read + verify + print {total:.2f} s, {total / count * 1e6:.1f} us an instruction")
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("instructions", nargs="?", type=int, default=100_000)
    count = parser.parse_args().instructions
    measure(max(count // 10, 10))
    seconds = measure(count)
    # Linux counts kilobytes, macOS bytes.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    print(f"peak memory {peak:.0f} MB")
    return 1 if count <= 100_000 and (seconds > MOST_SECONDS or peak > MOST_MEGABYTES) else 0


if __name__ == "__main__":
    sys.exit(main())
