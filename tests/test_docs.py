"""The documentation is true: tables and shown output come from the code, links lead somewhere, commands exist."""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from warpsmith.cli import COMMANDS, Parser

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "warpsmith"


def generator() -> Any:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATE = generator()
PAGES: list[Path] = GENERATE.pages()
by_name = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@by_name
def test_tables_and_shown_output_are_what_the_code_gives(page: Path) -> None:
    """`python docs/generate.py` rewrites a page that this finds stale."""
    text = page.read_text(encoding="utf-8")
    assert GENERATE.refreshed(text) == text, "run: python docs/generate.py"


def test_every_table_is_on_a_page() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [name for name in GENERATE.TABLES if f"<!-- table: {name} -->" not in text] == []
    assert text.count("<!-- table:") == text.count("<!-- end -->") == len(GENERATE.TABLES)


def test_a_stale_table_is_found() -> None:
    """The check would be worthless if it took any text for right."""
    page = "<!-- table: devices -->\n\n| old |\n\n<!-- end -->\n"
    assert GENERATE.refreshed(page) != page
    assert "NVIDIA L4" in GENERATE.refreshed(page)


def slugs(text: str) -> set[str]:
    """The anchors of a page's headings, as Markdown tools make them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@by_name
def test_links_lead_to_files_and_headings(page: Path) -> None:
    broken: list[str] = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        path = page.parent / file if file else page
        if not path.is_file() or (anchor and anchor not in slugs(path.read_text(encoding="utf-8"))):
            broken.append(target)
    assert broken == []


def shown_commands() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for block in re.findall(
            r"^```(?:sh|console)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        ):
            for line in block.splitlines():
                found = re.match(r"(?:\$ )?(?:.*\.venv/bin/)?(warpsmith \w.*)", line)
                if found:
                    yield page.name, found[1]


@pytest.mark.parametrize(("page", "command"), list(shown_commands()))
def test_shown_commands_are_understood(page: str, command: str) -> None:
    """A renamed option would leave readers with a command that fails."""
    _, name, *words = shlex.split(command, comments=True)
    assert name in COMMANDS, page
    module = import_module(f"warpsmith.cli.{name}")
    parser = Parser(prog=name)
    module.register(parser)
    parsed = vars(parser.parse_args(words))
    files = parsed.get("files") or [parsed.get("file")]
    assert [file for file in files if file is not None and not (ROOT / file).is_file()] == []


def test_every_page_is_in_the_navigation_and_the_readme() -> None:
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)) == pages
    assert set(re.findall(r"\(docs/(\S+\.md)\)", (ROOT / "README.md").read_text(encoding="utf-8"))) == pages - {
        "index.md"
    }


def test_the_readme_has_its_two_commands() -> None:
    """Continuous integration runs these two lines as they are."""
    lines = [
        line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("python3 ")
    ]
    assert len(lines) == 2
    assert lines[0].endswith("warpsmith run --example gelu")
    assert lines[1].endswith("python -m pytest -n auto")


def python_blocks() -> list[str]:
    return re.findall(
        r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


@pytest.mark.parametrize("block", python_blocks())
def test_the_readmes_python_runs(
    block: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is the first thing that a user pastes."""
    monkeypatch.chdir(ROOT)
    exec(compile(block, "README.md", "exec"), {})
    assert ".visible .entry" in capsys.readouterr().out


_PATH = re.compile(r"`((?:[\w.-]+/)+(?:[\w.-]+\.(?:py|md|toml|hlo|mlir))?)`")


@by_name
def test_files_that_are_named_exist(page: Path) -> None:
    """A page that sends its reader to a file that has moved is worse than one that names none."""
    text = page.read_text(encoding="utf-8")
    named = {path for path in _PATH.findall(text) if "NAME" not in path}
    assert [path for path in sorted(named) if not any((top / path).exists() for top in (ROOT, PACKAGE))] == []


_NUMBERED = re.compile(
    r"reference:?\s+(?:\w+\s+)?sections?\s+\d|"
    r"(?:pipeline|tile)(?:\.md|\s+reference|\s+sections?),?\s+(?:sections?\s+)?\d|"
    r"pipeline\s+reference|(?<![\"\w])sections?\s+\d+\.\d",
    re.IGNORECASE,
)
_CITED = re.compile(r'docs/([\w-]+\.md)`?(?:,\s+"([^"]+)")?')


def uncited(text: str) -> list[str]:
    """What a source cites that stands in no file here: numbered sections, pages or headings that aren't there."""
    found = [match[0] for match in _NUMBERED.finditer(text)]
    for name, heading in _CITED.findall(text):
        page = ROOT / "docs" / name
        headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE) if page.is_file() else []
        if not page.is_file() or (heading and heading not in headings):
            found.append(f"{name} {heading}".rstrip())
    return found


def test_sources_cite_what_a_reader_can_open() -> None:
    """Wrong: a section of a document that is not in this repository, or a page or heading of ours that has moved."""
    files = [each for top in (PACKAGE, ROOT / "tests", ROOT / "docs", ROOT / "bench") for each in top.rglob("*.py")]
    seen = {str(each.relative_to(ROOT)): uncited(each.read_text(encoding="utf-8")) for each in sorted(files)}
    seen.pop("tests/test_docs.py", None)
    assert {name: found for name, found in seen.items() if found} == {}


def test_a_citation_of_what_is_not_here_is_seen() -> None:
    """Wrong: a check that lets everything through."""
    assert len(uncited("Reference: section 5.1; tile.md 11.2; pipeline reference, 7.3; section 13.1")) == 4
    assert uncited('`docs/numerics.md`, "Edge values"; see docs/ir.md; PTX ISA, "mma.sync"; xla/a/reduction.cc') == []
    assert uncited('`docs/numerics.md`, "No such heading"; docs/nowhere.md') == [
        "numerics.md No such heading",
        "nowhere.md",
    ]
