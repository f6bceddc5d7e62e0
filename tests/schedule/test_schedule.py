"""The schedule of a module: what becomes a kernel, what stays on the host, and when a buffer is free."""

from __future__ import annotations

from collections.abc import Iterable

from warpsmith.hlo.module import HloModule
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.hlo_passes.wrap import wrap
from warpsmith.schedule.schedule import Schedule, make_schedule

TEXT = """HloModule m

less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}

ENTRY e {
  x = f32[8,4] parameter(0)
  c = f32[] constant(2)
  cb = f32[8,4] broadcast(c), dimensions={}
  y = f32[8,4] multiply(x, cb)
  flat = f32[32] reshape(y)
  s = f32[32] sort(flat), dimensions={0}, to_apply=less
  b = f32[4,8] bitcast(s)
  n = f32[4,8] negate(b)
  dead = f32[8,4] negate(x)
  ROOT t = (f32[4,8], f32[8,4]) tuple(n, y)
}
"""


def named(found: Schedule, buffers: Iterable[int]) -> tuple[str, ...]:
    return tuple(found.names[b] for b in buffers)


def wrapped() -> HloModule:
    return wrap(parse_hlo(TEXT))


def test_plain_ops_become_fusions_under_their_own_names() -> None:
    entry = wrapped().entry
    opcodes = {each.name: each.opcode for each in entry}
    assert {opcodes[name] for name in ("cb", "y", "n")} == {"fusion"}
    assert opcodes["s"] == "sort"
    assert opcodes["flat"] == "bitcast"  # a reshape that moves nothing
    body = entry.instruction("cb").called_computations[0]
    assert [each.opcode for each in body] == ["constant", "broadcast"]  # the scalar constant comes along


def test_wrapped_module_still_is_hlo() -> None:
    """Its text parses to the same module."""
    module = wrapped()
    assert parse_hlo(str(module)) == module


def test_wrapping_twice_changes_nothing() -> None:
    module = wrapped()
    assert wrap(module) is module


def test_steps_and_their_kinds() -> None:
    found = make_schedule(wrapped())
    assert [(step.kind, step.instruction.name) for step in found.steps] == [
        ("kernel", "cb"),
        ("kernel", "y"),
        ("host", "s"),
        ("kernel", "n"),
    ]
    assert found.steps[2].reason == "no emitter takes 'sort'"
    assert named(found, found.parameters) == ("x",)
    assert named(found, found.results) == ("n", "y")


def test_views_share_storage_and_steps_free_what_nobody_needs() -> None:
    found = make_schedule(wrapped())
    number = {name: b for b, name in enumerate(found.names)}
    assert found.storage[number["flat"]] == number["y"]
    assert found.storage[number["b"]] == number["s"]
    assert found.buffers[number["b"]].dims == (4, 8)
    frees = {step.instruction.name: named(found, step.frees) for step in found.steps}
    assert frees == {"cb": (), "y": ("x", "cb"), "s": (), "n": ("s",)}  # y is a result


def test_large_products_are_left_to_the_host() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[512,512] parameter(0)
  ROOT r = f32[512,512] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""
    (large,) = make_schedule(wrap(parse_hlo(text))).steps
    assert large.kind == "host"
    assert "134217728 multiply-adds" in large.reason
    (small,) = make_schedule(wrap(parse_hlo(text.replace("512", "64")))).steps
    assert small.kind == "kernel"


def test_tuples_and_elements_are_names_only() -> None:
    text = """HloModule m
f {
  p = f32[8] parameter(0)
  a = f32[8] negate(p)
  b = f32[8] abs(p)
  ROOT t = (f32[8], f32[8]) tuple(a, b)
}
ENTRY e {
  p = f32[8] parameter(0)
  r = (f32[8], f32[8]) fusion(p), kind=kLoop, calls=f
  first = f32[8] get-tuple-element(r), index=0
  second = f32[8] get-tuple-element(r), index=1
  ROOT t = (f32[8], (f32[8], f32[8])) tuple(second, inner)
}""".replace("  ROOT t = (f32[8], (", "  inner = (f32[8], f32[8]) tuple(first, p)\n  ROOT t = (f32[8], (")
    found = make_schedule(wrap(parse_hlo(text)))
    assert [named(found, step.outputs) for step in found.steps] == [("r{0}", "r{1}")]
    assert named(found, found.results) == ("r{1}", "r{0}", "p")
