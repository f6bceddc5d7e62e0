"""HLO text is read as XLA and people write it, and printed as XLA prints it."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import pytest

from warpsmith.errors import HloSyntaxError
from warpsmith.hlo import HloModule, Shape, TupleShape, parse_hlo, print_module
from warpsmith.hlo.attributes import (
    Alias,
    ConvDimNumbers,
    EntryLayout,
    FrontendAttributes,
    IotaGroups,
    OpMetadata,
    PaddingConfig,
    PaddingDim,
    RawText,
    SliceDim,
    Window,
    WindowDim,
)
from warpsmith.hlo.text.style import DEFAULT, SHORT
from warpsmith.hlo.verifier import verify_module

HERE = Path(__file__).parent
XLA_FILES = sorted((HERE / "xla_text").glob("*.hlo"))
XLA_ATTRIBUTES: list[str] = json.loads((HERE / "xla_text" / "attributes.json").read_text())
CASES = sorted((HERE / "cases").glob("*.hlo"))

GELU = """HloModule m:

gelu (param: bf16[6,64,8]) -> bf16[6,64,8] {
  %param = bf16[6,64,8]{2,1,0} parameter(0)
  %constant_0 = bf16[] constant(0.5)
  %bcast_0 = bf16[6,64,8]{2,1,0} broadcast(bf16[] %constant_0), dimensions={}
  %constant_1 = bf16[] constant(1)
  %bcast_1 = bf16[6,64,8]{2,1,0} broadcast(bf16[] %constant_1), dimensions={}
  %constant_2 = bf16[] constant(0.79785)
  %bcast_2 = bf16[6,64,8]{2,1,0} broadcast(bf16[] %constant_2), dimensions={}
  %constant_3 = bf16[] constant(0.044708)
  %bcast_3 = bf16[6,64,8]{2,1,0} broadcast(bf16[] %constant_3), dimensions={}
  %square = bf16[6,64,8]{2,1,0} multiply(bf16[6,64,8]{2,1,0} %param, bf16[6,64,8]{2,1,0} %param)
  %cube = bf16[6,64,8]{2,1,0} multiply(bf16[6,64,8]{2,1,0} %square, bf16[6,64,8]{2,1,0} %param)
  %multiply_3 = bf16[6,64,8]{2,1,0} multiply(bf16[6,64,8]{2,1,0} %cube, bf16[6,64,8]{2,1,0} %bcast_3)
  %add_1 = bf16[6,64,8]{2,1,0} add(bf16[6,64,8]{2,1,0} %param, bf16[6,64,8]{2,1,0} %multiply_3)
  %multiply_2 = bf16[6,64,8]{2,1,0} multiply(bf16[6,64,8]{2,1,0} %add_1, bf16[6,64,8]{2,1,0} %bcast_2)
  %tanh_0 = bf16[6,64,8]{2,1,0} tanh(bf16[6,64,8]{2,1,0} %multiply_2)
  %add_0 = bf16[6,64,8]{2,1,0} add(bf16[6,64,8]{2,1,0} %tanh_0, bf16[6,64,8]{2,1,0} %bcast_1)
  %multiply_1 = bf16[6,64,8]{2,1,0} multiply(bf16[6,64,8]{2,1,0} %add_0, bf16[6,64,8]{2,1,0} %bcast_0)
  ROOT %multiply_0 = bf16[6,64,8]{2,1,0} multiply(bf16[6,64,8]{2,1,0} %param, bf16[6,64,8]{2,1,0} %multiply_1)
}
"""

ADD = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }\n"


def entry(*lines: str, before: str = "") -> HloModule:
    """A module of one entry with `p = f32[4,8]` and `z = f32[]` defined."""
    body = ["p = f32[4,8] parameter(0)", "z = f32[] constant(0)", *lines]
    return parse_hlo(f"HloModule m\n{before}ENTRY e {{\n" + "\n".join(body) + "\n}\n")


def assert_round_trips(text: str) -> HloModule:
    module = parse_hlo(text)
    printed = str(module)
    again = parse_hlo(printed)
    assert again == module
    assert str(again) == printed
    return module


@pytest.mark.parametrize("path", XLA_FILES, ids=lambda path: path.stem)
def test_text_that_xla_printed_comes_back_byte_for_byte(path: Path) -> None:
    text = path.read_text()
    module = assert_round_trips(text)
    assert str(module) == text
    verify_module(module)


def test_each_attribute_that_xla_prints_comes_back_byte_for_byte() -> None:
    assert len(XLA_ATTRIBUTES) > 70
    for text in XLA_ATTRIBUTES:
        assert str(assert_round_trips(text)) == text


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_hand_written_cases_round_trip_and_verify(path: Path) -> None:
    verify_module(assert_round_trips(path.read_text()))


def test_the_walk_through_gelu_becomes_an_entry_with_one_fusion() -> None:
    module = assert_round_trips(GELU)
    assert [each.name for each in module.computations] == ["gelu", "main"]
    fusion = module.entry.root
    assert (fusion.opcode, fusion.attributes["kind"]) == ("fusion", "kLoop")
    assert fusion.called_computations == (module.computation("gelu"),)
    assert [each.literal.item() for each in module.instructions() if each.literal is not None] == [
        0.5,
        1.0,
        0.796875,
        0.044677734375,
    ]
    verify_module(module)


def test_the_garbage_collector_is_left_as_it_was() -> None:
    for on in (True, False):
        (gc.enable if on else gc.disable)()
        try:
            parse_hlo(GELU)
            assert gc.isenabled() is on
            with pytest.raises(HloSyntaxError):
                parse_hlo("ENTRY {")
            assert gc.isenabled() is on
        finally:
            gc.enable()


def test_metadata_is_taken_apart_on_demand() -> None:
    fields = 'op_name="jit(f)/a" source_line=-3 source_column=0 note="it\\\'s \\"b\\""'
    text = f'ENTRY e {{ x = f32[2] parameter(0), metadata={{{fields}}}  y = f32[2] abs(x), metadata={{op_name="a"}} }}'
    x, y = parse_hlo(text).entry
    assert x.metadata is not None
    assert x.metadata.fields == (
        ("op_name", "jit(f)/a"),
        ("source_line", -3),
        ("source_column", 0),
        ("note", 'it\'s "b"'),
    )
    assert str(x.metadata) == "{" + fields + "}"
    assert y.metadata == OpMetadata((("op_name", "a"),))
    assert hash(y.metadata) == hash(OpMetadata((("op_name", "a"),)))
    assert y.metadata != x.metadata
    assert (y.metadata.get("op_name"), y.metadata.get("other")) == ("a", None)


def test_a_long_chain_parses_and_prints() -> None:
    def chain(count: int) -> str:
        lines = [
            f'  x{i} = f32[128,256]{{1,0}} add(x{i - 1}, x0), metadata={{op_name="f/{i}"}}' for i in range(1, count)
        ]
        return "HloModule big\n\nENTRY e {\n  x0 = f32[8,2]{1,0} parameter(0)\n" + "\n".join(lines) + "\n}\n"

    module = parse_hlo(chain(10_000))
    assert len(module.entry) == 10_000
    assert parse_hlo(str(module)) == module


FORMS = [
    "HloModule m\nENTRY e { ROOT x = f32[2] parameter(0) }",
    "HloModule m, is_scheduled=true\n\nENTRY %e (x: f32[2]) -> f32[2] {\n  ROOT %x = f32[2]{0} parameter(0)\n}\n\n",
    "ENTRY e { x = f32[2] parameter(0)  y = f32[2] negate(x) }",
    "e { x = f32[2] parameter(0)\n y = f32[2] negate(x) }",
    "// one\nHloModule m /* two\n lines */\nENTRY e { // here\n x = f32[2] /*shape*/ parameter( /*n*/ 0) }",
    "/*a*/ HloModule /*b*/ m/*c*/, /*d*/ is_scheduled=true , //\n num_partitions=1\nENTRY e { x = s8[] parameter(0) }",
    "HloModule m ENTRY e { x = f32[2] parameter(0) ROOT y =\n f32[2]\n  negate(\n x\n )\n }",
    "ENTRY e { x = f32[2] parameter(0)\n y = (f32[2], /*index=1*/f32[2]) tuple(f32[2] x, /*index=1*/ f32[2] %x) }",
    "HloModule m\nENTRY e { %0 = f32[2] parameter(0)\n ROOT %1 = f32[2] negate(%0) }",
    'ENTRY e { x = f32[2] parameter(0), metadata={op_name="a b" source_line=3}\n y = f32[2] abs(x)\n , metadata={} }',
    ADD
    + "ENTRY e { x = f32[2] parameter(0) z = f32[] constant(0) r = f32[] reduce(x, z), to_apply=%add, dimensions={0} }",
    "ENTRY e { x = f32[2] parameter(0) f = f32[2] fusion(x), kind=kLoop, calls=b }\nb { x = f32[2] parameter(0) }",
    'HloModule m\nENTRY e { x = token[] after-all() y = opaque[] custom-call(), custom_call_target="a" }',
    "ENTRY e { x = f32[?,<=4,2]{2,1,0:T(8,128)(*,2)L(3)#(u32)*(u8)E(4)S(1)SC(0:1,2)M(8)} parameter(0) }",
    'ENTRY e { x = b(f32[4]{0}) custom-call(), custom_call_target="pin" }',
    "ENTRY e { y = f32[2]{0:D(C+~)P((f32[2]{0}, s32[]))} parameter(0) }",
    "HloModule m\nENTRY e { x = f32[3] parameter(0) y = f32[2,3] broadcast(x), dimensions={1} }",
    "HloModule m\nENTRY e { z = f32[] parameter(0) y = f32[2,3] broadcast(z) }",
    'ENTRY e { x = f32[] parameter(0) ROOT y = f32[] custom-call(x), custom_call_target="a\\303\\251\\001é" }',
]


@pytest.mark.parametrize("text", FORMS)
def test_forms_that_people_write_are_read(text: str) -> None:
    assert_round_trips(text)


def test_the_last_instruction_is_the_root_where_none_is_marked() -> None:
    assert entry("y = f32[4,8] negate(p)").entry.root.name == "y"


def test_a_module_without_a_header_is_named_after_its_entry() -> None:
    assert parse_hlo("ENTRY e { x = f32[] parameter(0) }").name == "module_e"


def test_style_is_kept_and_can_be_chosen() -> None:
    text = (
        'HloModule m\n\nENTRY %e (x: f32[2]) -> f32[2] {\n  %x = f32[2]{0} parameter(0), metadata={op_name="n"}\n'
        "  ROOT %y = f32[2]{0} negate(f32[2]{0} %x)\n}"
    )
    module = parse_hlo(text)
    assert str(module) == text
    assert print_module(module, SHORT) == (
        'HloModule m\n\nENTRY e {\n  x = f32[2]{0} parameter(0), metadata={op_name="n"}\n'
        "  ROOT y = f32[2]{0} negate(x)\n}\n\n"
    )
    assert "negate(%x)" in print_module(module, DEFAULT)
    assert parse_hlo(print_module(module, SHORT)) == module == parse_hlo(print_module(module, DEFAULT))


def test_style_is_no_part_of_equality_but_every_field_is() -> None:
    base = "HloModule m\nENTRY e { x = f32[2]{0} parameter(0) ROOT y = f32[2]{0} negate(x) }"
    assert parse_hlo(base) == parse_hlo(base.replace("x", "%x"))
    for other in (
        base.replace("HloModule m", "HloModule n"),
        base.replace("ENTRY e", "ENTRY f"),
        base.replace("y =", "w ="),
        base.replace("negate", "abs"),
        base.replace("{0}", ""),
        base.replace("f32[2]", "f16[2]"),
        base.replace("negate(x)", 'negate(x), backend_config="1"'),
        base.replace("HloModule m", "HloModule m, num_partitions=2"),
        base.replace("ROOT ", "").replace("x = ", "ROOT x = "),
    ):
        assert parse_hlo(other) != parse_hlo(base), other


TYPED = [
    ("x = f32[2,8] slice(p), slice={[0:4:2], [0:8]}", "slice", (SliceDim(0, 4, 2), SliceDim(0, 8))),
    ("x = f32[6,9] pad(p, z), padding=1_1x-1_3_0", "padding", PaddingConfig((PaddingDim(1, 1), PaddingDim(-1, 3)))),
    (
        "x = f32[4,7] reduce-window(p, z), window={size=1x2 stride=1x3 pad=0_0x-1_2 rhs_reversal=0x1}, to_apply=add",
        "window",
        Window((WindowDim(1), WindowDim(2, 3, -1, 2, reversal=True))),
    ),
    (
        "x = f32[4,4] convolution(p, p), window={lhs_dilate=2 size=1 rhs_dilate=3}, dim_labels=0b_0i->b0",
        "window",
        Window((WindowDim(1, base_dilation=2, window_dilation=3),)),
    ),
    ("x = f32[4,4] convolution(p, p), dim_labels=bf_io->bf", "dim_labels", ConvDimNumbers("bf", "io", "bf")),
    ("x = pred[4,8] compare(p, p), direction=LT, type=TOTALORDER", "direction", "LT"),
    ("x = pred[4,8] compare(p, p), direction=LT, type=TOTALORDER", "type", "TOTALORDER"),
    ("x = f32[4,8] all-reduce(p), replica_groups={{0,1},{2,3}}, to_apply=add", "replica_groups", ((0, 1), (2, 3))),
    (
        "x = f32[4,8] all-reduce(p), replica_groups=[4,2]<=[2,4]T(1,0), to_apply=add",
        "replica_groups",
        IotaGroups((4, 2), (2, 4), (1, 0)),
    ),
    ("x = f32[4,8] fusion(p, p), kind=kInput, calls=body", "kind", "kInput"),
    (
        "x = f32[4,8] fusion(p, p), kind=kInput, calls=body, output_to_operand_aliasing={{1}: (0, {2})}",
        "output_to_operand_aliasing",
        (Alias((1,), 0, (2,)),),
    ),
    ("x = f32[4,8] tanh(p), sharding={devices=[2,1]<=[2]}", "sharding", RawText("{devices=[2,1]<=[2]}")),
    (
        'x = f32[4,8] tanh(p), metadata={op_name="a\\"b" source_line=3}',
        "metadata",
        OpMetadata((("op_name", 'a"b'), ("source_line", 3))),
    ),
    (
        'x = f32[4,8] tanh(p), frontend_attributes={a="b",c={"d": 1}}',
        "frontend_attributes",
        FrontendAttributes((("a", "b"), ("c", '{"d": 1}'))),
    ),
    ('x = f32[4,8] tanh(p), backend_config={"a":"}"}', "backend_config", RawText('{"a":"}"}')),
    ('x = f32[4,8] tanh(p), backend_config="a\\303\\251"', "backend_config", "aé"),
    ("x = f32[4,8] sort(p), dimensions={1}, is_stable=true, to_apply=add", "is_stable", True),
    ("x = f32[4,4] dot(p, p), operand_precision={highest,default}", "operand_precision", ("highest", "default")),
    ('x = f32[4,8]{1,0} custom-call(), custom_call_target="a\'b"', "custom_call_target", "a'b"),
    (
        'x = f32[] custom-call(p), custom_call_target="f", operand_layout_constraints={f32[4,8]{0,1}}',
        "operand_layout_constraints",
        (parse_hlo("ENTRY e { p = f32[4,8]{0,1} parameter(0) }").entry.root.shape,),
    ),
]


@pytest.mark.parametrize(("line", "name", "value"), TYPED, ids=[line.split("(")[0] + name for line, name, _ in TYPED])
def test_attribute_values_are_typed(line: str, name: str, value: object) -> None:
    before = ADD + "body { a = f32[4,8] parameter(0) b = f32[4,8] parameter(1) ROOT r = f32[4,8] add(a, b) }\n"
    module = entry(line, before=before)
    assert module.entry.root.attributes[name] == value
    assert parse_hlo(str(module)) == module


def test_references_are_the_objects_themselves() -> None:
    module = entry(
        "y = f32[] reduce(p, z), dimensions={0,1}, to_apply=add",
        "w = f32[] negate(y), control-predecessors={p, z}",
        before=ADD,
    )
    reduce = module.entry.instruction("y")
    assert reduce.called_computations == (module.computation("add"),)
    assert module.entry.root.attributes["control-predecessors"] == (reduce.operands[0], reduce.operands[1])
    assert module.entry.users(reduce) == (module.entry.root,)


def test_header_fields_are_typed() -> None:
    module = parse_hlo(
        "HloModule m, is_scheduled=true, input_output_alias={ {}: (0, {}, must-alias) }, num_partitions=2, "
        "entry_computation_layout={(f32[2,3]{0,1})->f32[2,3]{1,0}}, "
        "allow_spmd_sharding_propagation_to_output={true,false}\n"
        "ENTRY e { ROOT x = f32[2,3]{0,1} parameter(0) }"
    )
    shape = module.entry.root.shape
    layout = module.attributes["entry_computation_layout"]
    assert module.attributes["is_scheduled"] is True
    assert module.attributes["num_partitions"] == 2
    assert module.attributes["input_output_alias"] == (Alias((), 0, (), "must-alias"),)
    assert module.attributes["allow_spmd_sharding_propagation_to_output"] == (True, False)
    assert isinstance(layout, EntryLayout)
    assert layout.parameters == (shape,)
    assert isinstance(layout.result, Shape)
    assert layout.result.minor_to_major == (1, 0)


def test_tuple_shapes_list_their_leaves_in_order() -> None:
    shape = parse_hlo("ENTRY e { x = ((f32[2], s4[3]), (), token[]) parameter(0) }").entry.root.shape
    assert isinstance(shape, TupleShape)
    assert [str(leaf) for leaf in shape.leaves()] == ["f32[2]", "s4[3]", "token[]"]
    assert shape.byte_size == 8 + 2


def test_objects_do_not_change() -> None:
    module = entry("y = f32[4,8] negate(p)")
    with pytest.raises(AttributeError):
        module.entry.root.name = "w"
    with pytest.raises(TypeError):
        module.entry.root.attributes["a"] = 1
    assert hash(module) == hash(parse_hlo(str(module)))
