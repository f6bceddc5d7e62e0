"""Every mutant of every kernel is found, or shown to do what the clean kernel does; clean kernels have no finding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from simt.mutation_kernels import KERNELS, clean_kernel
from simt.mutations import Mutant, Runner, equivalence, ir_runner, judge, mutants, ptx_mutants, record

from warpsmith.arrays import Array


def _survivors(clean: Runner, changed: Iterable[Mutant], seeds: Sequence[Sequence[Array]]) -> list[tuple[str, str]]:
    """Mutants that are neither found, on any of the inputs, nor equivalent; the clean kernel has to be clean."""
    wanted: list[list[Array]] = []
    for inputs in seeds:
        outputs, findings = clean(inputs)
        assert findings == []
        wanted.append(outputs)
    recording = None
    survivors: list[tuple[str, str]] = []
    count = 0
    for mutant in changed:
        count += 1
        if any(judge(mutant.run, inputs, outputs) for inputs, outputs in zip(seeds, wanted, strict=True)):
            continue
        recording = recording or record(clean, seeds[0])
        if not equivalence(mutant, recording, record(mutant.run, seeds[0])):
            survivors.append((mutant.operator, mutant.site))
    assert count >= 4
    return survivors


def test_the_kernels_are_of_all_emitters() -> None:
    emitters = {name.split()[0] for name in KERNELS}
    assert emitters == {
        *("loop", "transpose", "reduction", "concatenate", "dynamic_update_slice", "input_slices", "scatter")
    }
    assert len(KERNELS) >= 12


@pytest.mark.parametrize("name", KERNELS)
def test_mutants_of_the_ir_are_found(name: str) -> None:
    kernel = clean_kernel(name)
    seeds = [kernel.inputs(seed) for seed in range(3)]
    clean = ir_runner(kernel.module, kernel.outputs)
    assert _survivors(clean, mutants(kernel.module, kernel.outputs), seeds) == []


@pytest.mark.parametrize("name", KERNELS)
def test_mutants_of_the_ptx_are_found(name: str) -> None:
    kernel = clean_kernel(name)
    seeds = [kernel.inputs(seed) for seed in range(3)]
    assert _survivors(kernel.run_ptx(kernel.ptx), ptx_mutants(kernel.ptx, kernel.run_ptx), seeds) == []
