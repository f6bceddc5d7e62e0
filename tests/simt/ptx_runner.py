"""Small PTX kernels for tests: one instruction over arrays of bits, or a body over one input and one output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.simt.core.checks import Checks
from warpsmith.simt.ptx.launch import PtxLaunch, PtxStats, run_ptx

__all__ = ["HEADER", "apply", "body_kernel", "run_body"]

HEADER = ".version 8.8\n.target sm_100\n.address_size 64\n"

_BITS = {"pred": 1, "b8": 8, "b16": 16, "b32": 32, "b64": 64}
_DTYPES = {"b8": np.uint8, "b16": np.uint16, "b32": np.uint32, "b64": np.uint64}


def apply(
    instruction: str, operands: Sequence[tuple[str, Sequence[int]]], result: str = "b32", **options: Any
) -> list[int]:
    """The bits of `%d` after `instruction`, for each column of operand bits.

    Operands are %a, %b, %c, ... of the given register types (b16, b32, b64, or pred as 0 and 1); `%q` is a free
    predicate.  `instruction` may be several lines.  A predicate result comes as 0 or 1.
    """
    count = len(operands[0][1])
    names = "abcefg"
    declarations = [f".reg .{kind} %{name};" for (kind, _), name in zip(operands, names, strict=False)]
    lines: list[str] = []
    buffers: list[Array] = []
    for i, ((kind, values), name) in enumerate(zip(operands, names, strict=False)):
        stored = "b32" if kind == "pred" else kind
        width = _BITS[stored] // 8
        mask = (1 << _BITS[stored]) - 1
        buffers.append(np.array([v & mask for v in values], _DTYPES[stored]))
        lines += [f"ld.param.b64 %addr, [p{i}];", f"mad.wide.u32 %addr, %i, {width}, %addr;"]
        if kind == "pred":
            lines += ["ld.global.b32 %t, [%addr];", f"setp.ne.b32 %{name}, %t, 0;"]
        else:
            lines += [f"ld.global.{kind} %{name}, [%addr];"]
    out = "b32" if result == "pred" else result
    store = (
        ["selp.b32 %t, 1, 0, %d;", "st.global.b32 [%addr], %t;"]
        if result == "pred"
        else [f"st.global.{out} [%addr], %d;"]
    )
    text = HEADER + ".visible .entry k(" + ", ".join(f".param .u64 p{i}" for i in range(len(buffers) + 1)) + ") {\n"
    text += ".reg .b64 %addr; .reg .b32 %i, %t; .reg .pred %q; .reg ." + result + " %d;\n"
    text += "\n".join([*declarations, "mov.u32 %i, %tid.x;", *lines, instruction])
    text += f"\nld.param.b64 %addr, [p{len(buffers)}];\nmad.wide.u32 %addr, %i, {_BITS[out] // 8}, %addr;\n"
    text += "\n".join(store) + "\nret;\n}\n"
    output = np.zeros(count, _DTYPES[out])
    run_ptx(text, [*buffers, output], PtxLaunch((1,), (count,), **options))
    return output.tolist()


def body_kernel(body: str, registers: str = "", before: str = "") -> str:
    """A kernel of two u32 arrays: %x is this thread's input element, %y goes to its output element.

    `%in` and `%out` are the arrays' addresses, `%at` this thread's address in the output, `%i` its index in the grid;
    %r0-%r9, %rd0-%rd9 and %p0-%p9 are free.  `before` goes before the kernel.
    """
    return (
        HEADER
        + before
        + f"""
.visible .entry k(.param .u64 .ptr .align 16 in, .param .u64 .ptr .align 16 out)
{{
    .reg .b32 %r<10>; .reg .b64 %rd<10>; .reg .pred %p<10>;
    .reg .b32 %x, %y, %i, %cta, %n; .reg .b64 %in, %out, %at, %from;
    {registers}
    mov.u32 %i, %tid.x;
    mov.u32 %cta, %ctaid.x;
    mov.u32 %n, %ntid.x;
    mad.lo.u32 %i, %cta, %n, %i;
    ld.param.b64 %in, [in];
    ld.param.b64 %out, [out];
    mad.wide.u32 %from, %i, 4, %in;
    mad.wide.u32 %at, %i, 4, %out;
    ld.global.b32 %x, [%from];
    mov.b32 %y, 0;
{body}
$done:
    st.global.b32 [%at], %y;
$end:
    ret;
}}
"""
    )


def run_body(
    body: str,
    values: Sequence[int],
    *,
    block: int | None = None,
    registers: str = "",
    before: str = "",
    checks: Checks | None = None,
    **options: Any,
) -> tuple[list[int], PtxStats]:
    """Run `body_kernel` on one thread a value; the outputs as unsigned integers."""
    threads = block or len(values)
    source = np.array([v & 0xFFFFFFFF for v in values], np.uint32)
    target = np.zeros(len(values), np.uint32)
    text = body_kernel(body, registers, before)
    stats = run_ptx(text, [source, target], PtxLaunch((len(values) // threads,), (threads,), **options), checks)
    return target.tolist(), stats
