"""Running passes by name: parsing the list, errors, hooks."""

from __future__ import annotations

import pytest

import warpsmith.ir.dialects
from warpsmith.errors import UnknownPass
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.text.parser import parse_module
from warpsmith.passes.manager import PassCall, lookup, parse_pipeline, run_pipeline
from warpsmith.passes.pipeline import CPU_PIPELINE, GPU_PIPELINE

assert warpsmith.ir.dialects.arith
MODULE = "func.func @f(%a: index) -> index {\n %0 = arith.addi %a, %a : index\n return %0 : index\n}"


def test_options_have_the_type_of_their_default() -> None:
    calls = parse_pipeline(" canonicalize , optimize-loops{max_unroll=16}, lower-xla-to-scf{ warp-size=64 } ,cse")
    assert calls == (
        PassCall("canonicalize"),
        PassCall("optimize-loops", {"max_unroll": 16}),
        PassCall("lower-xla-to-scf", {"warp_size": 64}),
        PassCall("cse"),
    )
    assert [str(c) for c in calls] == [
        "canonicalize",
        "optimize-loops{max_unroll=16}",
        "lower-xla-to-scf{warp_size=64}",
        "cse",
    ]


@pytest.mark.parametrize(
    ("text", "cause", "help"),
    [
        ("canonicalise", "no pass is called 'canonicalise'", "did you mean 'canonicalize'?"),
        ("cse,optimize-loops{max_unrol=4}", "has no option 'max_unrol'", "did you mean 'max_unroll'?"),
        ("cse{x=1}", "has no option 'x'", "it has none"),
        ("optimize-loops{max_unroll=four}", "is int, not 'four'", None),
        ("cse,,licm", "can't read the pass list at ',licm'", "write a,b{option=1 other=x},c"),
        ("", "can't read the pass list", "write"),
        ("cse{", "can't read the pass list at 'cse{'", "write"),
    ],
)
def test_wrong_lists_say_what_is_wrong(text: str, cause: str, help: str | None) -> None:
    with pytest.raises(UnknownPass) as caught:
        parse_pipeline(text)
    assert cause in caught.value.cause
    if help is not None:
        assert caught.value.help is not None
        assert help in caught.value.help


def test_hooks_see_every_pass_in_order() -> None:
    seen: list[tuple[int, str]] = []
    verified: list[str] = []

    def verify(_module: Operation, name: str) -> None:
        verified.append(name)

    def on_after(index: int, name: str, module: Operation) -> None:
        assert module.name == "builtin.module"
        seen.append((index, name))

    timings = run_pipeline(parse_module(MODULE), "cse,licm,cse", verify=verify, on_after=on_after)
    assert seen == [(0, "cse"), (1, "licm"), (2, "cse")]
    assert verified == ["cse", "licm", "cse"]
    assert [(t.index, t.name) for t in timings] == seen
    assert all(t.seconds >= 0 for t in timings)


@pytest.mark.parametrize("name", sorted({*GPU_PIPELINE, *CPU_PIPELINE}))
def test_every_pass_of_a_pipeline_states_its_contract(name: str) -> None:
    info = lookup(name)
    assert info.name == name
    assert info.contract
    assert info.run.__module__ == f"warpsmith.passes.{name.replace('-', '_')}"
