"""The partitioner: no value is computed twice, and code grows linearly where a tree of expressions would explode."""

from __future__ import annotations

from itertools import pairwise

import pytest

from warpsmith.devices import device
from warpsmith.emitters import emit
from warpsmith.fusion import partition
from warpsmith.fusion.partitioner import Epilogue
from warpsmith.hlo.module import HloComputation, HloModule
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.ir.core.ssa import Operation


def module(body: str, root: str, parameters: str = "p = f32[7,7] parameter(0)") -> HloModule:
    """A module with one fusion of `body`."""
    names = ", ".join(line.split(" = ")[0].strip() for line in parameters.splitlines())
    return parse_hlo(
        f"HloModule m\nf {{\n{parameters}\n{body}\n}}\n"
        f"ENTRY e {{\n{parameters}\n  ROOT fusion = {root} fusion({names}), kind=kLoop, calls=f\n}}"
    )


def body_of(found: HloModule) -> HloComputation:
    return found.entry.root.attr("calls", HloComputation)


def emitted(found: HloModule, target: str = "sm_90") -> Operation:
    return emit(found.entry.root, device(target)).module


def count(found: Operation, name: str) -> int:
    return sum(op.name == name for op in found.walk())


LOG = "  l = f32[7,7] log(p)\n  t = f32[7,7] transpose(l), dimensions={1,0}\n  ROOT a = f32[7,7] add(l, t)"


def test_log_read_at_two_indices_gets_its_own_function() -> None:
    """The walk-through's first example: log is read by add at (i, j) and by transpose at (j, i)."""
    found = partition(body_of(module(LOG, "f32[7,7]")))
    assert [sorted(each.name for each in sub.instructions) for sub in found.subgraphs] == [["a", "t"], ["l"]]
    code = emitted(module(LOG, "f32[7,7]"))
    assert count(code, "func.func") == 3
    assert count(code, "math.log") == 1


def test_a_forced_root_gives_the_three_functions_of_the_picture() -> None:
    """With the transpose as a hero, each of the three ops is a function."""
    body = body_of(module(LOG, "f32[7,7]"))
    found = partition(body, [(body.root,)], forced=[body.instruction("t")])
    assert [[each.name for each in sub.instructions] for sub in found.subgraphs] == [["a"], ["t"], ["l"]]


def test_slice_and_pad_of_one_add_split_it() -> None:
    """The walk-through's second example: slice and pad read the add at different indices."""
    body = """  a = f32[7,7] add(p, p)
  z = f32[] constant(0)
  s = f32[5,7] slice(a), slice={[1:6], [0:7]}
  q = f32[5,7] pad(a, z), padding=-1_-1x0_0
  ROOT r = f32[5,7] multiply(s, q)"""
    split = body.replace("padding=-1_-1x0_0", "padding=-2_0x0_0")
    assert len(partition(body_of(module(split, "f32[5,7]"))).subgraphs) == 2
    # Cropping by pad and by slice alike is one index; the maps agree once simplified.
    assert len(partition(body_of(module(body, "f32[5,7]"))).subgraphs) == 1


def test_diamonds_emit_each_add_once() -> None:
    """Without the split, four levels would be sixteen adds."""
    lines = ["  x0 = f32[7,7] add(p, p)"]
    for i in range(3):
        lines.append(f"  t{i} = f32[7,7] transpose(x{i}), dimensions={{1,0}}")
        lines.append(f"  x{i + 1} = f32[7,7] add(x{i}, t{i})")
    lines[-1] = "  ROOT" + lines[-1]
    assert count(emitted(module("\n".join(lines), "f32[7,7]")), "arith.addf") == 4


@pytest.mark.parametrize("length", [16, 64])
def test_chain_of_add_and_transpose_is_linear(length: int) -> None:
    """2^64 adds otherwise."""
    lines: list[str] = []
    for i in range(length):
        source = f"x{i}" if i else "p"
        lines.append(f"  t{i} = f32[7,7] transpose({source}), dimensions={{1,0}}")
        lines.append(f"  x{i + 1} = f32[7,7] add({source}, t{i})")
    lines[-1] = "  ROOT" + lines[-1]
    code = emitted(module("\n".join(lines), "f32[7,7]"))
    assert count(code, "arith.addf") == length
    assert sum(1 for _ in code.walk()) < 12 * length


def test_two_reductions_of_one_value_share_its_function() -> None:
    """Equal maps of different loops are different indices: the exponential is one function, called in both loops."""
    text = """HloModule m
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] maximum(a, b) }
f {
  p = f32[8,9] parameter(0)
  z = f32[] constant(0)
  x = f32[8,9] exponential(p)
  s = f32[8] reduce(x, z), dimensions={1}, to_apply=sum
  m = f32[8] reduce(x, z), dimensions={1}, to_apply=max
  ROOT r = f32[8] divide(s, m)
}
ENTRY e {
  p = f32[8,9] parameter(0)
  ROOT fusion = f32[8] fusion(p), kind=kLoop, calls=f
}"""
    code = emitted(parse_hlo(text))
    assert count(code, "math.exp") == 1
    assert count(code, "scf.for") == 2


def test_slices_at_different_starts_are_different_indices() -> None:
    """Two dynamic-slices have equal maps but read different elements."""
    body = """  l = f32[7,7] log(p)
  a = f32[2,7] dynamic-slice(l, i, z), dynamic_slice_sizes={2,7}
  b = f32[2,7] dynamic-slice(l, j, z), dynamic_slice_sizes={2,7}
  ROOT r = f32[2,7] add(a, b)"""
    parameters = (
        "  p = f32[7,7] parameter(0)\n  i = s32[] parameter(1)\n  j = s32[] parameter(2)\n  z = s32[] parameter(3)"
    )
    assert count(emitted(module(body, "f32[2,7]", parameters)), "math.log") == 1


def test_reshaped_roots_share_one_function() -> None:
    """Roots that are bitcasts of one another are at one index, so nothing is computed twice."""
    body = """  l = f32[7,7] log(p)
  r = f32[49] reshape(l)
  ROOT t = (f32[7,7], f32[49]) tuple(l, r)"""
    code = emitted(module(body, "(f32[7,7], f32[49])"))
    assert count(code, "math.log") == 1
    assert count(code, "func.func") == 2


def test_a_subgraph_stops_at_two_thousand_instructions() -> None:
    """A function of ten thousand ops would take later passes too long."""
    lines = [f"  x{i + 1} = f32[7,7] negate({f'x{i}' if i else 'p'})" for i in range(5000)]
    lines[-1] = "  ROOT" + lines[-1]
    sizes = [len(each.instructions) for each in partition(body_of(module("\n".join(lines), "f32[7,7]"))).subgraphs]
    assert sizes == [2000, 2000, 1000]


def test_epilogue_takes_its_hero_as_an_argument() -> None:
    """What follows a hero is a function of the hero's value; the hero's operands have their own."""
    body = body_of(module("  l = f32[7,7] log(p)\n  t = f32[7,7] tanh(l)\n  ROOT a = f32[7,7] negate(t)", "f32[7,7]"))
    hero = body.instruction("t")
    found = partition(body, epilogues=[Epilogue((hero,), (body.root,), (7, 7), (None,))])
    (epilogue,) = found.epilogues
    assert epilogue.injected == (hero,)
    assert [each.name for each in epilogue.instructions] == ["a"]
    assert found.owners[body.instruction("l")] is not found.owners[hero]


def test_long_names_that_begin_alike_are_told_apart() -> None:
    """JAX names roots after paths in a tree of parameters: cut to one length, they are the same over and over."""
    long = "parameters_of_the_decoder_layers_attention_output_projection_kernel_optimizer_state_momentum"
    names, lines = ["p", *(f"{long}_{i}" for i in range(40))], list[str]()
    for before, name in pairwise(names):
        lines.append(f"  turned.{name} = f32[7,7] transpose({before}), dimensions={{1,0}}")
        lines.append(f"  {name} = f32[7,7] add({before}, turned.{name})")
    found = partition(body_of(module("\n".join([*lines[:-1], f"  ROOT{lines[-1]}"]), "f32[7,7]")))
    names = [each.name for each in found.subgraphs]
    assert len(set(names)) == len(names) >= 39
    assert all(len(name) <= 80 for name in names)
