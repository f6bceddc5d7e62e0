"""Every pass on the way to PTX keeps every fusion's results, and ptxas accepts what comes out."""

from __future__ import annotations

import pytest
from differential import check_passes, fusion_of
from fusion_corpus import CASES
from needs import needs_ptxas

from warpsmith.backends.nvptx.codegen import ptx_from_llvm
from warpsmith.backends.nvptx.ptxas import assemble
from warpsmith.compiler import lower_fusion
from warpsmith.devices import device

OTHER_ARCHITECTURES = ("sm_80", "sm_100")


@pytest.mark.parametrize("name", CASES)
def test_every_pass_keeps_the_results(name: str) -> None:
    """As emitted: within the interpreter's bounds.  After each pass: sound IR, text that reads back, the same bits."""
    case = CASES[name]
    counts = check_passes(case, case.device)
    assert counts.simulated >= 5


@needs_ptxas
@pytest.mark.parametrize("name", CASES)
def test_ptxas_accepts_the_code(name: str) -> None:
    fusion = fusion_of(CASES[name].module())
    number = list(CASES).index(name)
    targets = ["sm_90"] if number % 4 else ["sm_90", OTHER_ARCHITECTURES[number // 4 % 2]]
    for target in targets:
        machine = device(target)
        ptx = ptx_from_llvm(lower_fusion(fusion, machine).code, machine.architecture)
        cubin = assemble(ptx, machine.architecture)
        assert [kernel.name for kernel in cubin.kernels] == ["main"]
