"""Each pass does away with what it says, and no later pass of its pipeline brings it back."""

from __future__ import annotations

import pytest

from tests.fusion_corpus import CASES
from tests.tile.example_cases import every_example, kernel
from warpsmith.devices import device
from warpsmith.emitters import emit
from warpsmith.errors import InvalidIr
from warpsmith.ir.core.ssa import REGISTRY
from warpsmith.ir.text.parser import parse_module
from warpsmith.passes import manager
from warpsmith.passes.manager import PassInfo, lookup, names, run_pipeline
from warpsmith.passes.pipeline import (
    CPU_LOWERING,
    CPU_PIPELINE,
    GPU_LOWERING,
    GPU_PIPELINE,
    TILE_CPU_LOWERING,
    TILE_LOWERING,
)
from warpsmith.tile.dispatch import dispatch


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    ("target", "passes"), [("sm_90", GPU_PIPELINE + GPU_LOWERING), ("cpu", CPU_PIPELINE + CPU_LOWERING)]
)
def test_the_pipelines_of_fusions_keep_what_passes_say(name: str, target: str, passes: tuple[str, ...]) -> None:
    """If this failed, an op would reach a pass that was written for IR without it."""
    case = CASES[name]
    module = emit(case.module().entry.root, device(target)).module
    run_pipeline(module, passes, legality=True)


@pytest.mark.parametrize("passes", [TILE_LOWERING, TILE_CPU_LOWERING], ids=["gpu", "cpu"])
@every_example
def test_the_pipelines_of_tile_programs_keep_what_passes_say(name: str, passes: tuple[str, ...]) -> None:
    """The same for tile programs, on a GPU and as loops on a CPU."""
    run_pipeline(dispatch(kernel(name), device("sm_90")).module, passes, legality=True)


LOOP = """func.func @f(%t: tensor<4x8xf32>, %i: index) -> f32 {
  %x = tensor.extract %t[%i, %i] : tensor<4x8xf32>
  return %x : f32
}
"""


@pytest.mark.parametrize(
    ("passes", "illegal", "cause"),
    [
        ("cse", "tensor.extract", "tensor.extract: is alive after cse, which leaves none"),
        ("cse", "tensor.*", "tensor.extract: is alive after cse, which leaves none"),
        ("cse,licm", "arith.*", None),
    ],
)
def test_an_op_that_should_be_gone_is_named_with_its_pass_and_place(
    passes: str, illegal: str, cause: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If this failed, whoever writes a pass would look for the op in a dump."""
    claim(monkeypatch, "cse", illegal)
    module = parse_module(LOOP, "loop.mlir")
    if cause is None:
        run_pipeline(module, passes, legality=True)
        return
    with pytest.raises(InvalidIr) as caught:
        run_pipeline(module, passes, legality=True)
    assert caught.value.cause.startswith(cause)
    assert str(caught.value.span).startswith("loop.mlir:2:")


def test_a_later_pass_may_not_bring_back_what_an_earlier_one_did_away_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """If this failed, only the end of a pipeline would show that two of its passes work against each other."""
    claim(monkeypatch, "licm", "xla_gpu.apply_indexing")  # which flatten-tensors makes
    with pytest.raises(InvalidIr, match="is alive after flatten-tensors, though licm leaves none"):
        run_pipeline(parse_module(LOOP), "licm,flatten-tensors", legality=True)


def test_a_type_that_should_be_gone_is_named() -> None:
    """If this failed, a tensor could hide in a block's argument."""
    module = parse_module(LOOP)
    run_pipeline(module, "flatten-tensors", legality=True)
    illegal = lookup("lower-tensors").illegal_after[-1:]
    with pytest.raises(InvalidIr, match="is alive after cse, which leaves no tensors"):
        manager.Legality().check(module, "cse", illegal)


@pytest.mark.parametrize("name", names())
def test_what_a_pass_leaves_none_of_exists(name: str) -> None:
    """If this failed, a misspelt name would be looked for in vain, and never found."""
    dialects = {row.dialect for row in REGISTRY.values()}
    for each in lookup(name).illegal_after:
        assert not isinstance(each, str) or each in REGISTRY or each.removesuffix(".*") in dialects


def claim(monkeypatch: pytest.MonkeyPatch, name: str, illegal: str) -> None:
    """The pass says that it leaves none of `illegal`."""
    right = lookup

    def found(asked: str) -> PassInfo:
        info = right(asked)
        given = (illegal,) if asked == name else ()
        return PassInfo(info.name, info.run, info.options, info.contract, info.doc, (*info.illegal_after, *given))

    monkeypatch.setattr(manager, "lookup", found)


def test_what_an_op_becomes_in_llvm_is_an_op() -> None:
    """A row could name an op without a row, which only a kernel with the op in it would show."""
    assert [row.name for row in REGISTRY.values() if row.llvm and row.llvm not in REGISTRY] == []
