"""Questions about HLO have the answers that reading the text gives."""

from __future__ import annotations

import pytest

from warpsmith.errors import InvalidHlo, UnknownName, UsageError
from warpsmith.hlo import parse_hlo
from warpsmith.hlo.edit import clone
from warpsmith.hlo.graph import draw
from warpsmith.hlo.query import callers, find, fingerprint, instruction_named, neighbourhood, statistics, walk
from warpsmith.hlo.text.printer import print_module
from warpsmith.hlo.text.style import PrintStyle

TEXT = """HloModule m, replica_count=1

add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }

square { p = f32[4,8] parameter(0)  ROOT s = f32[4,8] multiply(p, p), metadata={op_name="square"} }

body { p = f32[4,8] parameter(0)  ROOT f = f32[4,8] fusion(p), kind=kLoop, calls=square }
cond { p = f32[4,8] parameter(0)  ROOT r = pred[] constant(false) }

ENTRY main {
  x = f32[4,8] parameter(0)
  zero = f32[] constant(0)
  fusion.1 = f32[4,8] fusion(x), kind=kLoop, calls=square
  fusion.2 = f32[4,8] fusion(fusion.1), kind=kInput, calls=square
  loop = f32[4,8] while(fusion.2), condition=cond, body=body
  sum = f32[4] reduce(loop, zero), dimensions={1}, to_apply=add
  call = f32[4] custom-call(sum), custom_call_target="thing"
  ROOT out = (f32[4], f32[4,8]) tuple(call, loop)
}
"""


def test_walk_gives_every_instruction_with_its_computation() -> None:
    module = parse_hlo(TEXT)
    pairs = list(walk(module))
    assert len(pairs) == TEXT.count(" = ")
    assert all(instruction in computation.instructions for computation, instruction in pairs)


def test_find_by_opcode_name_and_predicate() -> None:
    module = parse_hlo(TEXT)
    assert [each.name for each in find(module, "fusion")] == ["f", "fusion.1", "fusion.2"]
    assert [each.name for each in find(module, name="fusion*")] == ["fusion.1", "fusion.2"]
    assert [
        each.name for each in find(module, "fusion", predicate=lambda each: each.attr("kind", str) == "kInput")
    ] == ["fusion.2"]
    assert find(module.computation("square"), "fusion") == []
    assert [each.name for each in find(module.entry, name="sum")] == ["sum"]


def test_a_name_is_looked_up_in_the_entry_first() -> None:
    module = parse_hlo(TEXT)
    computation, instruction = instruction_named(module, "%sum")
    assert (computation.name, instruction.opcode) == ("main", "reduce")
    assert instruction_named(module, "square/p")[0].name == "square"
    with pytest.raises(InvalidHlo, match="3 computations") as ambiguous:
        instruction_named(module, "p")
    assert "square/p" in str(ambiguous.value.help)
    with pytest.raises(UnknownName) as unknown:
        instruction_named(module, "lopo")
    assert unknown.value.help == "did you mean 'loop'?"
    with pytest.raises(UnknownName):
        instruction_named(module, "square/q")


def test_callers_are_the_instructions_that_name_a_computation() -> None:
    module = parse_hlo(TEXT)
    found = {computation.name: [each.name for each in calls] for computation, calls in callers(module).items()}
    assert found == {
        "add": ["sum"],
        "square": ["f", "fusion.1", "fusion.2"],
        "body": ["loop"],
        "cond": ["loop"],
        "main": [],
    }


def test_a_neighbourhood_grows_by_operands_and_users() -> None:
    entry = parse_hlo(TEXT).entry
    loop = entry.instruction("loop")
    names = [[each.name for each in neighbourhood(entry, loop, radius)] for radius in range(3)]
    assert names[0] == ["loop"]
    assert names[1] == ["fusion.2", "loop", "sum", "out"]
    assert names[2] == ["zero", "fusion.1", "fusion.2", "loop", "sum", "call", "out"]


def test_statistics_count_what_the_text_holds() -> None:
    counted = statistics(parse_hlo(TEXT))
    assert (counted.computations, counted.instructions) == (5, 17)
    assert counted.opcodes["fusion"] == TEXT.count(" fusion(")
    assert counted.opcodes["parameter"] == TEXT.count(" parameter(")
    assert sum(counted.opcodes.values()) == counted.instructions
    assert counted.fusion_kinds == {"kLoop": 2, "kInput": 1}
    assert counted.custom_calls == {"thing": 1}
    assert counted.parameter_bytes == 4 * 8 * 4
    assert counted.constant_bytes == 4 + 1
    # fusion.1, fusion.2, loop; in the body f; sum and call.
    assert counted.result_bytes == 4 * 128 + 2 * 16
    assert counted.output_bytes == 16 + 128
    shown = str(counted).splitlines()
    assert any(line.split() == ["fusion", "3"] for line in shown)


def test_names_metadata_and_text_order_do_not_change_the_fingerprint() -> None:
    module = parse_hlo(TEXT)
    expected = fingerprint(module)
    assert len(expected) == 64
    assert fingerprint(parse_hlo(TEXT)) == expected
    assert fingerprint(clone(module, "other", lambda name: f"n_{name}")) == expected
    assert fingerprint(parse_hlo(print_module(module, PrintStyle(metadata=False)))) == expected
    moved = TEXT.replace(
        "  x = f32[4,8] parameter(0)\n  zero = f32[] constant(0)\n",
        "  zero = f32[] constant(0)\n  x = f32[4,8] parameter(0)\n",
    )
    assert moved != TEXT
    assert fingerprint(parse_hlo(moved)) == expected
    unused = TEXT.replace("ENTRY", "unused { p = f32[] parameter(0) }\n\nENTRY")
    assert fingerprint(parse_hlo(unused)) == expected


CHANGES = {
    "an opcode": ("multiply(p, p)", "add(p, p)"),
    "a constant": ("constant(0)", "constant(1)"),
    "the sign of a constant": ("constant(0)", "constant(-0)"),
    "a fusion's kind": ("kind=kInput", "kind=kOutput"),
    "an operand": ("custom-call(sum)", "custom-call(zero)"),
    "an attribute": ('target="thing"', 'target="other"'),
    "a called computation": ("body=body", "body=square"),
    "the order of results": ("tuple(call, loop)", "tuple(loop, call)"),
    "a layout": ("ROOT s = f32[4,8] ", "ROOT s = f32[4,8]{0,1} "),
    "the header": ("replica_count=1", "replica_count=2"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_module_does_changes_its_fingerprint(change: str) -> None:
    old, new = CHANGES[change]
    assert old in TEXT
    text = TEXT.replace(old, new)
    if change == "the order of results":
        text = text.replace("(f32[4], f32[4,8]) tuple", "(f32[4,8], f32[4]) tuple")
    assert fingerprint(parse_hlo(text)) != fingerprint(parse_hlo(TEXT))


def test_a_computation_has_a_fingerprint_of_its_own() -> None:
    module = parse_hlo(TEXT)
    prints = [fingerprint(computation) for computation in module.computations]
    assert len(set(prints)) == len(prints)
    other = parse_hlo(
        "f { q = f32[4,8] parameter(0)  ROOT t = f32[4,8] multiply(q, q) }\nENTRY e { x = f32[] parameter(0) }"
    )
    assert fingerprint(other.computation("f")) == fingerprint(module.computation("square"))


def test_the_fingerprint_is_the_same_on_every_machine_and_day() -> None:
    """Caches and bug reports refer to it: a change here must be meant."""
    module = parse_hlo(
        "HloModule m\nENTRY e { x = f32[2] parameter(0)  c = f32[2] constant({1, 2})  ROOT a = f32[2] add(x, c) }"
    )
    assert fingerprint(module) == "6ab9975b9d1f2cd4b12ef17f7acae72bf67e741a3cde3a2c288c0775952b2b4f"


def test_graphs_show_nodes_edges_and_where_they_were_cut() -> None:
    module = parse_hlo(TEXT)
    whole = draw(module.entry, "dot")
    assert whole.startswith('digraph "main" {\n')
    assert whole.endswith("\n}")
    assert whole.count("[label=") == len(module.entry)
    assert whole.count(" -> ") == sum(len(each.operands) for each in module.entry)
    assert 'label="loop\\nwhile f32[4,8]\\ncond, body"' in whole
    near = draw(module.entry, "mermaid", around=module.entry.instruction("sum"), radius=1)
    assert near.splitlines()[1] == "flowchart TD"
    assert '{{"sum<br/>reduce f32[4]<br/>add"}}' in near
    assert near.count('["..."]') == 3  # into loop, out of loop, out of call
    with pytest.raises(UsageError) as caught:
        draw(module.entry, "mermade")
    assert caught.value.help == "did you mean 'mermaid'?"


def test_a_name_cannot_break_out_of_a_graph() -> None:
    text = 'ENTRY e { ROOT c = f32[] custom-call(), custom_call_target="a\\"b", called_computations={} }'
    assert draw(parse_hlo(text).entry, "dot").count('"') % 2 == 0


def test_a_long_chain_is_no_problem() -> None:
    lines = ["  v0 = f32[2] parameter(0)"]
    lines += [f"  v{i} = f32[2] negate(v{i - 1})" for i in range(1, 20_000)]
    module = parse_hlo("HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}\n")
    assert statistics(module).opcodes == {"negate": 19_999, "parameter": 1}
    assert len(neighbourhood(module.entry, module.entry.instruction("v100"), 5)) == 11
    assert fingerprint(module) != ""
