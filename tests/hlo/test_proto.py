"""Serialised HLO is read as the module that its text is, without XLA; bytes that mean nothing are refused."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import random
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hlo.lenient_texts import TEXTS

from warpsmith.cli import main
from warpsmith.errors import BadProto, HloSyntaxError, ToolMissing, WarpsmithError
from warpsmith.hlo import load as loading
from warpsmith.hlo.load import load, load_snapshot
from warpsmith.hlo.module import HloComputation, HloModule
from warpsmith.hlo.proto.reader import read_proto
from warpsmith.hlo.proto.schema import ENUMS, MESSAGES
from warpsmith.hlo.proto.wire import decode
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.hlo.verifier import verify_module

HERE = Path(__file__).parent
needs_jaxlib = pytest.mark.skipif(
    importlib.util.find_spec("jaxlib") is None, reason="jaxlib isn't installed: pip install jax"
)

# Each text in a child of its own (XLA aborts for some): the bytes, and the text that XLA makes of these bytes.
CHILD = r"""
import json, os, sys
from jaxlib import _hlo
style = _hlo.HloPrintOptions()
style.print_large_constants = True
answers = []
for text in json.load(sys.stdin):
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            data = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
            answer = [data.hex(), _hlo.HloModule.from_serialized_hlo_module_proto(data).to_string(style)]
        except Exception:
            answer = None
        with os.fdopen(write, "w") as pipe:
            json.dump(answer, pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        found = pipe.read()
        answers.append(json.loads(found) if found else None)
    os.wait()
json.dump(answers, sys.stdout)
"""
# What XLA's text of a proto says in other words than the proto: asynchronous ops by the op that they wrap.
SUGAR = "-start("


def serialised(texts: list[str]) -> list[tuple[bytes, str]]:
    child = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return [(bytes.fromhex(each[0]), each[1]) for each in json.loads(child.stdout) if each is not None]


@pytest.fixture(scope="module")
def corpus() -> list[tuple[bytes, str]]:
    """Modules of XLA's GPU compiler, hand-written cases, and a text of each form that XLA reads."""
    files = [*sorted((HERE / "gpu_hlo").glob("*.hlo")), *sorted((HERE / "cases").glob("*.hlo"))]
    texts = [path.read_text() for path in files] + [text for each in TEXTS.values() for text in each]
    return serialised([text for text in texts if len(text) < 300_000])


def named(value: object) -> object:
    """A computation or an instruction by its name: the order of computations is the proto's own."""
    if isinstance(value, tuple):
        return tuple(named(each) for each in value)
    return getattr(value, "name", value) if hasattr(value, "name") else value


def facts(module: HloModule) -> dict[str, object]:
    found: dict[str, object] = {"": (module.name, module.entry.name, dict(module.attributes))}
    for computation in module.computations:
        found[computation.name] = (computation.root.name, dict(computation.attributes))
        for each in computation:
            found[f"{computation.name}/{each.name}"] = (
                *(each.opcode, each.shape, named(each.operands), each.literal, each.parameter_number),
                {name: named(value) for name, value in each.attributes.items() if name != "origin"},
            )
    return found


@needs_jaxlib
def test_a_proto_is_the_module_that_xlas_text_of_it_is(corpus: list[tuple[bytes, str]]) -> None:
    """An attribute, a literal or a header field would be lost or changed on the way."""
    assert len(corpus) > 120
    compared = 0
    for data, text in corpus:
        module = read_proto(data).module
        verify_module(module)
        if SUGAR in text or "nan(" in text:
            continue
        wanted = facts(parse_hlo(text))
        mine = facts(module)
        different = [name for name in wanted if wanted[name] != mine.get(name) and "nan" not in repr(wanted[name])]
        assert not different, (different[0], wanted[different[0]], mine.get(different[0]))
        compared += 1
    assert compared > 100


@needs_jaxlib
def test_our_text_of_a_proto_is_read_by_xla_as_the_same_bytes(corpus: list[tuple[bytes, str]]) -> None:
    """What is printed of a proto would mean something else."""
    modules = [read_proto(data).module for data, _ in corpus]
    again = serialised([str(module) for module in modules])
    assert len(again) == len(modules)
    for module, (data, _) in zip(modules, again, strict=True):
        # XLA's text doesn't carry which computations a schedule orders; everything else is compared.
        assert facts(read_proto(data).module).keys() == facts(module).keys()


@needs_jaxlib
def test_mutated_bytes_are_read_or_refused_and_nothing_else(corpus: list[tuple[bytes, str]]) -> None:
    """A damaged dump would end in a traceback, or take all memory."""
    rng = random.Random(5)
    tried = 0
    for data, _ in corpus[:40]:
        if len(data) > 20_000:
            continue
        for _ in range(25):
            changed = bytearray(data)
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(len(changed))
                match rng.randrange(3):
                    case 0:
                        changed[at] = rng.randrange(256)
                    case 1:
                        del changed[at : at + rng.randint(1, 9)]
                    case _:
                        changed[at:at] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 5)))
                if not changed:
                    changed = bytearray(b"\n")
            with contextlib.suppress(WarpsmithError):
                verify_module(read_proto(bytes(changed)).module)
            tried += 1
    assert tried > 300


# ------------------------------------------------------------------------------------------------- without jaxlib
def varint(value: int) -> bytes:
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def encode(kind: str, fields: dict[str, Any]) -> bytes:
    """The wire form of a message: the inverse of `decode`, written for the tests."""
    out = bytearray()
    by_name = {field.name: (number, field) for number, field in MESSAGES[kind].items()}
    for name, value in fields.items():
        number, field = by_name[name]
        for each in value if field.repeated else [value]:
            if field.kind in MESSAGES:
                body = encode(field.kind, each)
            elif field.kind in ("string", "bytes"):
                body = each.encode() if isinstance(each, str) else each
            elif field.kind in ("float", "double"):
                wire, code = (5, "<f") if field.kind == "float" else (1, "<d")
                out += varint(number << 3 | wire) + struct.pack(code, each)
                continue
            else:
                if field.kind in ENUMS:
                    each = next(n for n, word in ENUMS[field.kind].items() if word == each)
                out += varint(number << 3) + varint(int(each))
                continue
            out += varint(number << 3 | 2) + varint(len(body)) + body
    return bytes(out)


F32 = {"element_type": "f32", "dimensions": [2], "layout": {"minor_to_major": [0]}}
ONE = 1 << 32  # ids are 64 bits: the computation's in the upper half
DOUBLED = {
    "name": "doubled",
    "entry_computation_id": 1,
    "computations": [
        {
            "name": "main",
            "id": 1,
            "root_id": ONE + 2,
            "instructions": [
                {"name": "x", "opcode": "parameter", "shape": F32, "id": ONE},
                {"name": "y", "opcode": "add", "shape": F32, "id": ONE + 2, "operand_ids": [ONE, ONE]},
            ],
        }
    ],
}
VALUES = {"shape": F32, "f32": [1.0, 2.5]}
TWICE = {"shape": F32, "f32": [2.0, 5.0]}


def test_module_proto_and_snapshot_are_told_apart_by_their_bytes() -> None:
    """A user would have to say what a `.pb` holds."""
    module = encode("Module", DOUBLED)
    for data in (module, encode("HloProto", {"hlo_module": DOUBLED})):
        found = load_snapshot(data)
        assert [each.name for each in found.module.entry] == ["x", "y"]
        assert found.arguments == found.results == ()
    snapshot = encode("HloSnapshot", {"hlo": {"hlo_module": DOUBLED}, "arguments": [VALUES], "result": TWICE})
    found = load_snapshot(snapshot)
    np.testing.assert_array_equal(found.arguments[0], np.float32([1, 2.5]))
    np.testing.assert_array_equal(found.results[0], np.float32([2, 5]))


@pytest.mark.parametrize(("result", "line", "status"), [(2.0, "agrees", 0), (3.0, "differs in 1 of 2 elements", 1)])
def test_run_compares_with_the_result_that_a_snapshot_records(
    result: float, line: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong: a result that differs from the recorded one goes unnoticed."""
    fields = {"hlo": {"hlo_module": DOUBLED}, "arguments": [VALUES], "result": {"shape": F32, "f32": [result, 5.0]}}
    path = tmp_path / "step.pb"
    path.write_bytes(encode("HloSnapshot", fields))
    assert main(["run", "--no-cache", str(path)]) == status
    assert f"recorded   result: {line}" in capsys.readouterr().out
    assert main(["run", "--no-cache", "--json", str(path)]) == status
    found = json.loads(capsys.readouterr().out)
    assert (found["recorded_elements"], found["recorded_mismatches"]) == (2, status)


def test_what_encode_wrote_is_what_decode_gives() -> None:
    """The tests' own messages would prove nothing."""
    window = {"size": 3, "stride": 1, "padding_low": -2, "window_reversal": True}
    assert decode(encode("WindowDimension", window), "WindowDimension") == window


def test_packed_and_single_numbers_are_the_same_list() -> None:
    """Numbers that an older writer wrote one by one would be lost."""
    single = encode("Tile", {"dimensions": [8, 128, -1]})
    packed = b"\x0a" + varint(len(body := varint(8) + varint(128) + varint(-1))) + body
    assert decode(single, "Tile") == decode(packed, "Tile") == {"dimensions": [8, 128, -1]}


def test_unknown_fields_are_skipped() -> None:
    """A file of a newer XLA couldn't be read."""
    extra = varint(900 << 3 | 2) + varint(3) + b"abc" + varint(901 << 3) + varint(7)
    assert decode(extra + encode("Tile", {"dimensions": [8]}) + extra, "Tile") == {"dimensions": [8]}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"entry_computation_id": 7}, "the entry has id 7"),
        ({"computations": [{**DOUBLED["computations"][0], "root_id": 9}]}, "root of computation 'main'"),
        (
            {"computations": [{"name": "m", "id": 1, "instructions": [{"name": "a", "opcode": "tahn", "id": 3}]}]},
            "opcode 'tahn'",
        ),
        (
            {
                "computations": [
                    {"name": "m", "id": 1, "instructions": [{"name": "a", "opcode": "abs", "operand_ids": [5]}]}
                ]
            },
            "refers to id 5",
        ),
    ],
)
def test_parts_that_do_not_fit_are_named(change: dict[str, Any], says: str) -> None:
    """The user would see a KeyError."""
    with pytest.raises(BadProto, match=says):
        load_snapshot(encode("Module", {**DOUBLED, **change}))


def test_names_get_letters_that_text_has() -> None:
    """What we print of a module of TensorFlow's, with slashes in its names, couldn't be read again."""
    computation = DOUBLED["computations"][0]
    first, *rest = computation["instructions"]
    odd = {**computation, "name": "a b", "instructions": [{**first, "name": "0/x:\n"}, *rest]}
    module = load_snapshot(encode("Module", {**DOUBLED, "computations": [odd]})).module
    assert module.entry.name == "a_b"
    assert next(iter(module.entry)).name == "_0_x__"
    assert parse_hlo(str(module)) == module


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": ""}, "an instruction has no name"),
        ({"comparison_direction": "GTE"}, "comparison_direction 'GTE', not one of EQ, NE"),
        ({"fusion_kind": "loop"}, "fusion_kind 'loop', not one of kLoop"),
        ({"opcode": "convolution", "convolution_dimension_numbers": {"input_batch_dimension": 1 << 62}}, "dimensions"),
        ({"opcode": "convolution", "convolution_dimension_numbers": {"input_batch_dimension": -1}}, "dimensions"),
    ],
)
def test_fields_of_an_instruction_that_mean_nothing_are_refused(change: dict[str, Any], says: str) -> None:
    """A module would be printed as text that can't be read; a dimension's number would take all time and memory."""
    computation = DOUBLED["computations"][0]
    first, *rest = computation["instructions"]
    wrong = {**computation, "instructions": [{**first, **change}, *rest]}
    with pytest.raises(BadProto, match=says):
        load_snapshot(encode("Module", {**DOUBLED, "computations": [wrong]}))


def test_a_comparison_of_empty_tuples_is_refused_and_no_index_error() -> None:
    """A damaged dump would end as a bug of ours."""
    empty = {"element_type": "tuple"}
    instructions = [
        {"name": "t", "opcode": "tuple", "id": 1, "shape": empty},
        {
            "name": "c",
            "opcode": "compare",
            "id": 2,
            "shape": {"element_type": "pred"},
            "operand_ids": [1, 1],
            "comparison_direction": "EQ",
            "comparison_type": "FLOAT",
        },
    ]
    message = {
        "name": "m",
        "entry_computation_id": 1,
        "computations": [{"name": "e", "id": 1, "root_id": 2, "instructions": instructions}],
    }
    with pytest.raises(WarpsmithError, match="compare"):
        verify_module(load_snapshot(encode("Module", message)).module)


@pytest.mark.parametrize("data", [b"\x00\x01\x02", b"\n" + b"\xff" * 10, b"\x0b\x00", b"\n\x05ab"])
def test_other_bytes_are_refused_with_the_formats_that_are_read(data: bytes) -> None:
    """A picture would be taken for HLO."""
    with pytest.raises(BadProto, match="neither HLO text nor serialised HLO") as caught:
        load_snapshot(data)
    assert "HloSnapshot" in str(caught.value)


def test_a_literal_is_in_logical_order_whatever_its_layout() -> None:
    """Constants with another layout would be transposed."""
    shape = {"element_type": "s32", "dimensions": [2, 3], "layout": {"minor_to_major": [0, 1]}}
    constant = {
        "name": "c",
        "opcode": "constant",
        "shape": shape,
        "id": 3,
        "literal": {"shape": shape, "s32": [1, 4, 2, 5, 3, 6]},
    }
    module = load_snapshot(
        encode(
            "Module", {**DOUBLED, "computations": [{"name": "m", "id": 1, "root_id": 3, "instructions": [constant]}]}
        )
    ).module
    literal = module.entry.root.literal
    assert literal is not None
    np.testing.assert_array_equal(literal.array, [[1, 2, 3], [4, 5, 6]])
    assert isinstance(module.entry, HloComputation)


STABLEHLO = """module @m {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.negate %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""


@needs_jaxlib
def test_stablehlo_text_and_bytecode_become_hlo(tmp_path: Path) -> None:
    """A JAX user's own form of a program would be refused."""
    path = tmp_path / "program"  # told by content, not by name
    path.write_text(STABLEHLO)
    assert load(path).entry.root.opcode == "negate"
    mlir = loading._jaxlib_mlir()  # pyright: ignore[reportPrivateUsage]
    path.write_bytes(mlir.serialize_portable_artifact(STABLEHLO, "1.9.0"))
    assert load(path).entry.root.opcode == "negate"
    with pytest.raises(BadProto, match="doesn't convert"):
        load_snapshot(STABLEHLO.replace("negate", "negated").encode())


def test_a_text_that_shows_mlir_is_no_stablehlo() -> None:
    """A page or a script given by mistake would send its author to install jaxlib."""
    page = f"# A page\n\nOf functions:\n\n{STABLEHLO}"
    with pytest.raises(HloSyntaxError, match="expected `ENTRY`"):
        load_snapshot(page.encode(), "page.md")


@pytest.mark.parametrize("above", ["", "\n// a comment // of two\n", '#loc = loc("x")\n'])
def test_what_stands_above_a_module_of_stablehlo(above: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program with a comment, or with an alias above the module, would be read as HLO text."""
    monkeypatch.setattr(loading, "_jaxlib_mlir", lambda: None)
    with pytest.raises(ToolMissing, match="StableHLO"):
        load_snapshot((above + STABLEHLO).encode())


def test_stablehlo_without_jaxlib_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message would be an ImportError's."""
    monkeypatch.setattr(loading, "_jaxlib_mlir", lambda: None)
    with pytest.raises(ToolMissing, match="StableHLO") as caught:
        load_snapshot(STABLEHLO.encode(), "step.mlir")
    assert "warpsmith[jax]" in str(caught.value)
