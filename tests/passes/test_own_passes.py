"""Passes that a user writes: registered, loaded, put into a pipeline; what is wrong with them is said."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import warpsmith as ws
from warpsmith.cli import main
from warpsmith.errors import InvalidIr, OwnPassFailed, UnknownPass, UsageError
from warpsmith.passes import manager
from warpsmith.passes.manager import parse_pipeline, run_pipeline
from warpsmith.passes.support.edits import edited, parse_edits

ROOT = Path(__file__).parents[2]
PASS, TWICE = ROOT / "examples/passes/double_by_adding.py", ROOT / "examples/passes/twice.mlir"
MODULE = "func.func @f(%a: i32) -> i32 {\n  %0 = arith.addi %a, %a : i32\n  return %0 : i32\n}\n"


@pytest.fixture(autouse=True)
def registered_passes_go_again() -> Iterator[None]:
    known = dict(vars(manager)["_registered"])
    yield
    vars(manager)["_registered"].clear()
    vars(manager)["_registered"].update(known)
    manager.lookup.cache_clear()


def test_a_loaded_pass_runs_and_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """If this failed, a pass would have to be in this repository to be tried."""
    assert main(["opt", str(TWICE), "--load", str(PASS), "--passes", "double-by-adding,cse"]) == 0
    assert "arith.addf %x, %x : f32" in capsys.readouterr().out
    assert main(["opt", "--load", str(PASS), "--list-passes"]) == 0
    assert "double-by-adding\n    contract: bit-exact\n" in capsys.readouterr().out


def test_a_pass_is_put_into_the_list_of_opt(capsys: pytest.CaptureFixture[str]) -> None:
    """If this failed, --pipeline would mean something else in opt than in compile."""
    words = ["opt", str(TWICE), "--load", str(PASS), "--passes", "canonicalize,cse", "--time-passes"]
    assert main([*words, "--pipeline", "+double-by-adding@before:cse,-canonicalize"]) == 0
    assert [line.split()[-1] for line in capsys.readouterr().err.splitlines()] == ["double-by-adding", "cse"]


def test_a_pass_has_options_as_ours_have() -> None:
    """If this failed, an experiment would need a file for each of its settings."""
    seen: list[object] = []

    @ws.passes.register("note", contract="bit-exact")
    def note(module: ws.passes.Operation, *, limit: int = 4, name: str = "") -> None:
        seen.append((module.name, limit, name))

    run_pipeline(ws.passes.parse_module(MODULE), "note{limit=7 name=x},note")
    assert seen == [("builtin.module", 7, "x"), ("builtin.module", 4, "")]
    assert note.__name__ == "note"


@pytest.mark.parametrize(("name", "cause"), [("cse", "there is a pass 'cse' already"), ("a b", "can't be the name")])
def test_names_that_are_taken_or_cannot_be_written_are_refused(name: str, cause: str) -> None:
    """If this failed, a pass could replace one of ours in every pipeline, or never be asked for."""
    with pytest.raises(UsageError, match=cause):
        ws.passes.register(name, contract="bit-exact")


def test_what_a_pass_raises_names_it_and_its_line() -> None:
    """If this failed, a mistake in a user's pass would look like a bug of ours."""

    @ws.passes.register("fails", contract="bit-exact")
    def fails(module: ws.passes.Operation) -> None:
        ws.passes.rewrite(module, {"arith.addi": [lambda op, _: bool(op.operands[2])]})

    with pytest.raises(OwnPassFailed, match="pass 'fails' raised IndexError") as caught:
        run_pipeline(ws.passes.parse_module(MODULE), "fails")
    assert caught.value.span is not None
    assert caught.value.span.file == __file__
    assert fails.__name__ == "fails"


def test_invalid_ir_is_the_pass_that_left_it() -> None:
    """If this failed, LLVM would be the first to look at it."""

    @ws.passes.register("cuts", contract="bit-exact")
    def cuts(module: ws.passes.Operation) -> None:
        next(op for op in module.walk() if op.name == "func.return").erase()

    with pytest.raises(InvalidIr, match="pass 'cuts' leaves invalid IR"):
        run_pipeline(ws.passes.parse_module(MODULE), "cuts")
    assert cuts.__name__ == "cuts"


def test_a_pass_that_cannot_be_called_so_is_the_users() -> None:
    """If this failed, a pass without a parameter, or with an option without default, would end as our crash."""
    register = ws.passes.register
    register("takes-none", contract="bit-exact")(lambda: None)
    register("built-in", contract="bit-exact")(len)  # pyright: ignore[reportArgumentType]
    for name in ("takes-none", "built-in"):
        with pytest.raises(OwnPassFailed, match=f"pass '{name}' raised TypeError"):
            run_pipeline(ws.passes.parse_module(MODULE), name)


def test_what_the_ir_refuses_a_pass_is_the_passs_mistake() -> None:
    """If this failed, erasing an op that is used would be reported as a bug of Warpsmith."""

    @ws.passes.register("erases-used", contract="bit-exact")
    def erases(module: ws.passes.Operation) -> None:
        next(op for op in module.walk() if op.name == "arith.addi").erase()

    with pytest.raises(OwnPassFailed, match=r"pass 'erases-used' raised InternalError: erasing arith\.addi") as caught:
        run_pipeline(ws.passes.parse_module(MODULE), "erases-used")
    assert caught.value.span is not None
    assert caught.value.span.file == __file__
    assert erases.__name__ == "erases"


def test_a_pass_that_removes_the_entry_is_named() -> None:
    """If this failed, PTX would hold no kernel, and the CPU's compiler would call it a bug of ours."""

    @ws.passes.register("empties", contract="bit-exact")
    def empties(module: ws.passes.Operation) -> None:
        for op in list(module.body):
            op.erase()

    with pytest.raises(InvalidIr, match=r"pass 'empties' leaves invalid IR: the function with xla\.entry is gone"):
        run_pipeline(ws.passes.parse_module(MODULE.replace("-> i32 {", "-> i32 attributes {xla.entry} {")), "empties")
    assert empties.__name__ == "empties"


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ("+licm@before:cse", "canonicalize,licm,cse,simplify-arith,cse"),
        ("+licm@after:cse", "canonicalize,cse,licm,simplify-arith,cse"),
        ("+licm@after:cse#2", "canonicalize,cse,simplify-arith,cse,licm"),
        (" + licm @ before : cse#2 , -canonicalize ", "cse,simplify-arith,licm,cse"),
        ("-cse", "canonicalize,simplify-arith"),
        ("-cse#2", "canonicalize,cse,simplify-arith"),
        ("+licm@before:cse,+symbol-dce@after:licm", "canonicalize,licm,symbol-dce,cse,simplify-arith,cse"),
        (
            "+optimize-loops{max_unroll=2}@after:canonicalize",
            "canonicalize,optimize-loops{max_unroll=2},cse,simplify-arith,cse",
        ),
        ("", "canonicalize,cse,simplify-arith,cse"),
    ],
)
def test_edits_name_the_first_of_a_name_unless_they_count(edits: str, expected: str) -> None:
    """If this failed, a pass would run where nobody put it."""
    calls = parse_pipeline("canonicalize,cse,simplify-arith,cse")
    assert ",".join(map(str, edited(calls, parse_edits(edits)))) == expected


@pytest.mark.parametrize(
    ("edits", "cause", "help"),
    [
        ("+licm", "can't read the pipeline's change at '+licm'", "+PASS@after:NAME#2"),
        ("licm@before:cse", "can't read the pipeline's change at 'licm@before:cse'", "+PASS"),
        ("+lcim@before:cse", "no pass is called 'lcim'", "did you mean 'licm'?"),
        ("+licm{x=1}@before:cse", "has no option 'x'", "it has none"),
        ("+licm@before:cs", "the pipeline has no pass 'cs'", "did you mean 'cse'?"),
        ("-licm", "the pipeline has no pass 'licm'", "it has: canonicalize, cse"),
        ("-cse#3", "the pipeline has 'cse' 2 times, and no 'cse#3'", None),
        ("-cse#0", "can't read the pipeline's change at '-cse#0'", "+PASS@after:NAME#2"),
    ],
)
def test_wrong_edits_say_what_is_wrong(edits: str, cause: str, help: str | None) -> None:
    """If this failed, a misspelt place would leave the pipeline as it was, without a word."""
    with pytest.raises(UnknownPass) as caught:
        edited(parse_pipeline("canonicalize,cse,cse"), parse_edits(edits))
    assert cause in caught.value.cause
    assert help is None or help in str(caught.value.help)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("x = 1\ny = x / 0\n", "p.py:2:1: error[WS0101]: loading this file raised ZeroDivisionError"),
        ("def f(:\n", "p.py:1:1: error[WS0101]: loading this file raised SyntaxError"),
        (None, "can't load"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_the_users(
    text: str | None, cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If this failed, a mistake in one's file would be reported as a crash of Warpsmith."""
    path = tmp_path / "p.py"
    if text is not None:
        path.write_text(text)
    assert main(["opt", "--load", str(path), "--list-passes"]) == 2
    assert cause in capsys.readouterr().err


def test_the_pages_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """If this failed, a reader of the page about passes would paste what doesn't work."""
    page = (ROOT / "docs/your-own-pass.md").read_text()
    for block in re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        exec(compile(block, "your-own-pass.md", "exec"), {})
    assert "arith.addf %x, %x : vector<4xbf16>" in capsys.readouterr().out
