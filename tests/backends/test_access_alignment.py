"""Neighbours that a thread reads one by one become one access, where their address is known to be aligned."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from differential import fusion_of
from hero_kernels import body

from warpsmith.backends.nvptx.codegen import ptx_from_llvm
from warpsmith.compiler import lower_fusion
from warpsmith.devices import device
from warpsmith.hlo.text.parser import parse_hlo

ACCESS = re.compile(r"\b(ld|st)\.global(?:\.nc)?((?:\.v\d)?\.b\d+)")


def accesses(text: str) -> Counter[str]:
    kernel = lower_fusion(fusion_of(parse_hlo(body(text))), device("sm_90"))
    return Counter("".join(each) for each in ACCESS.findall(ptx_from_llvm(kernel.code, "sm_90")))


# What XLA's own PTX has for these: 64 bits each way for one complex number, 128 for two.
CASES = {
    "a complex number": ("x = c64[1000] parameter(0)\n ROOT r = c64[1000] negate(x)", {"ld.v2.b32": 1, "st.v2.b32": 1}),
    "of f64": ("x = c128[1000] parameter(0)\n ROOT r = c128[1000] negate(x)", {"ld.v2.b64": 1, "st.v2.b64": 1}),
    "from an odd place": (
        "x = c64[1000] parameter(0)\n ROOT r = c64[700] slice(x), slice={[3:703]}",
        {"ld.v2.b32": 1, "st.v2.b32": 1},
    ),
    "two floats from an odd place": (
        """x = f32[64,3] parameter(0)
        a = f32[64,1] slice(x), slice={[0:64],[1:2]}
        b = f32[64,1] slice(x), slice={[0:64],[2:3]}
        ROOT r = f32[64,1] add(a, b)""",
        {"ld.b32": 2, "st.b32": 1},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_parts_are_read_and_written_together(name: str) -> None:
    text, expected = CASES[name]
    assert accesses(text) == expected
