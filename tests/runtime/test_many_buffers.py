"""Kernels of very many buffers: PTX that ptxas takes, or a refusal that says why."""

from __future__ import annotations

import re

import pytest
from differential import fusion_of
from needs import needs_ptxas

from warpsmith.backends.nvptx.codegen import ptx_from_llvm
from warpsmith.backends.nvptx.ptxas import assemble
from warpsmith.compiler import lower_fusion
from warpsmith.devices import device
from warpsmith.emitters import emit
from warpsmith.errors import LoweringError, UnsupportedFusion
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.text.parser import parse_hlo


def total(count: int) -> HloInstruction:
    """A fusion of `count` inputs: their sum."""
    lines = [f"p{i} = f32[64] parameter({i})" for i in range(count)]
    lines += [f"s{i} = f32[64] add({f's{i - 1}' if i > 1 else 'p0'}, p{i})" for i in range(1, count)]
    lines[-1] = "ROOT " + lines[-1]
    return fusion_of(parse_hlo("HloModule m\nfused {\n" + "\n".join(lines) + "\n}"))


def version(ptx: str) -> str:
    found = re.search(r"^\.version (\S+)", ptx, re.MULTILINE)
    assert found is not None
    return found[1]


@needs_ptxas
@pytest.mark.parametrize(("inputs", "expected"), [(543, "8.0"), (544, "8.1")])
def test_more_than_544_buffers_take_a_ptx_version_that_allows_them(inputs: int, expected: str) -> None:
    """4,352 bytes of parameters before PTX 8.1; with one too many ptxas refuses the text."""
    llvm = lower_fusion(total(inputs), device("sm_90")).code
    ptx = ptx_from_llvm(llvm, "sm_90")
    assert version(ptx) == expected
    assert assemble(ptx, "sm_90").kernels
    if expected == "8.1":
        with pytest.raises(LoweringError, match=r"545 buffers can't be had in PTX 8\.0"):
            ptx_from_llvm(llvm, "sm_90", 80)


def test_more_buffers_than_a_kernel_takes_are_refused() -> None:
    fusion = total(4095)
    with pytest.raises(UnsupportedFusion, match="4096 inputs and outputs") as refused:
        emit(fusion, device("sm_90"))
    assert refused.value.help is not None
    assert "split it" in refused.value.help
