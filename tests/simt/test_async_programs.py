"""Random programs of copies, groups, waits, barriers and reads, in IR and in PTX, against a model of one thread."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simt.matrix_kernels import COMMIT, COPY_IR, WAIT, Run, ir_kernel, ptx_kernel, run_ir, run_ptx_text

MACHINES = ("ir", "ptx")
Move = tuple[str, int]
"""copy, read (one's own slot), look (the neighbour's slot), commit, wait (until so many fly), barrier."""


def _program(machine: str, moves: list[Move]) -> Run:
    """Thread t of 32 has slots at words 32 s + t; copy number k brings word 32 k + t of the input."""
    lines: list[str] = []
    copies = reads = 0
    for i, (what, number) in enumerate(moves):
        if machine == "ir":
            place = "%x" if what == "look" else "%t"
            lines.append(f"%s{i} = arith.constant {32 * number} : index\n%w{i} = arith.addi %s{i}, {place} : index")
        if what == "copy":
            ir = f"""%k{i} = arith.constant {32 * copies} : index
            %g{i} = arith.addi %k{i}, %t : index
            "nvgpu.device_async_copy"(%tile, %w{i}, %in, %g{i}) {{bytes = 4 : i64}} : {COPY_IR}"""
            ptx = f"cp.async.ca.shared.global [%r10+{128 * number}], [%rd0+{128 * copies}], 4;"
            copies += 1
        elif what in ("read", "look"):
            ir = f"""%v{i} = memref.load %tile[%w{i}] : memref<512xf32, 3>
            %k{i} = arith.constant {32 * reads} : index
            %o{i} = arith.addi %k{i}, %t : index
            memref.store %v{i}, %out[%o{i}] : memref<1280xf32>"""
            at = "%r11" if what == "look" else "%r10"
            ptx = f"ld.shared.b32 %r20, [{at}+{128 * number}];\nst.global.b32 [%rd1+{128 * reads}], %r20;"
            reads += 1
        else:
            ir, ptx = {
                "commit": (COMMIT["ir"], COMMIT["ptx"]),
                "wait": (WAIT["ir"].replace("n = 0", f"n = {number}"), f"cp.async.wait_group {number};"),
                "barrier": ("gpu.barrier", "bar.sync 0;"),
            }[what]
        lines.append(ir if machine == "ir" else ptx)
    source = np.arange(1280, dtype=np.float32)
    if machine == "ir":
        body = "%x = arith.xori %t, %c1 : index\n" + "\n".join(lines)
        return run_ir(ir_kernel(body, element="f32", inputs=1280, outputs=1280, shared=512), source)
    start = """
    mad.lo.u32 %r10, %t, 4, %tile;
    xor.b32 %r1, %t, 1;
    mad.lo.u32 %r11, %r1, 4, %tile;
    mad.wide.u32 %rd0, %t, 4, %in;
    mad.wide.u32 %rd1, %t, 4, %out;
    """
    return run_ptx_text(ptx_kernel(start + "\n".join(lines)), source, np.zeros(1280, np.float32))


def _model(moves: list[Move]) -> tuple[str, list[int]]:
    """The first mistake by the rules, told for one slot and one thread at a time; and which copy each read sees."""
    gathered: list[tuple[int, int]] = []
    groups: list[list[tuple[int, int]]] = []
    held: dict[int, int] = {}
    fresh: set[int] = set()  # slots that were copied to, or whose copy was awaited, since the last barrier
    looked: set[int] = set()  # slots that the neighbour has read since then
    seen: list[int] = []
    copies = 0
    for what, number in moves:
        flying = {slot for group in [*groups, gathered] for slot, _ in group}
        if what in ("copy", "read", "look") and number in flying:
            return "copy-in-flight", seen
        if what == "copy":
            if number in looked:
                return "race", seen
            gathered.append((number, copies))
            fresh.add(number)
            copies += 1
        elif what == "commit":
            groups.append(gathered)
            gathered = []
        elif what == "wait":
            while len(groups) > number:
                for slot, copy in groups.pop(0):
                    held[slot] = copy
                    fresh.add(slot)
        elif what == "barrier":
            fresh, looked = set(), set()
        else:
            if number not in held:
                return "uninitialised-read", seen
            if what == "look":
                if number in fresh:
                    return "race", seen
                looked.add(number)
            seen.append(held[number] * 2 + (what == "look"))
    return "", seen


_FILL: list[Move] = [("copy", 0), ("copy", 1), ("copy", 2), ("commit", 0), ("wait", 0), ("barrier", 0)]
_SLOT = st.integers(0, 2)
_MOVES = st.one_of(
    _SLOT.map(lambda slot: [("copy", slot), ("commit", 0)]),
    _SLOT.map(lambda groups: [("wait", groups), ("barrier", 0)]),
    st.tuples(st.sampled_from(["read", "look", "look", "copy", "wait"]), _SLOT).map(lambda move: [move]),
    st.sampled_from(["commit", "barrier", "barrier"]).map(lambda what: [(what, 0)]),
)


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
@given(parts=st.lists(_MOVES, min_size=2, max_size=12), filled=st.sampled_from([True, True, True, False]))
@settings(max_examples=150, deadline=None)
def test_random_programs(machine: str, parts: list[list[Move]], filled: bool) -> None:
    """The first mistake is the model's; up to there each read sees what the model says."""
    moves = [*(_FILL if filled else []), *(move for part in parts for move in part)]
    run = _program(machine, moves)
    first, seen = _model(moves)
    assert [each for each in run.codes if each != "unwritten-output"][:1] == ([first] if first else [])
    for i, number in enumerate(seen):
        copy, neighbour = divmod(number, 2)
        expected = [float(32 * copy + (t ^ neighbour)) for t in range(32)]
        assert run.output[32 * i : 32 * i + 32].tolist() == expected
