"""The dump's page: what it holds, that it needs nothing else, and that a browser runs it."""

from __future__ import annotations

import re
import subprocess
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from needs import CHROMIUM, needs_chromium

from warpsmith.cli import main
from warpsmith.cli.files import example_text
from warpsmith.compiler import kernel_steps
from warpsmith.hlo import parse_hlo
from warpsmith.hlo.builder import ComputationBuilder, build_module
from warpsmith.report.page.page import Code, page

TEXT = """HloModule small

f {
  x = f32[64] parameter(0)
  curve = f32[64] tanh(x)
  ROOT y = f32[64] add(curve, x)
}
"""


class _Tags(HTMLParser):
    """Every tag is closed; attributes are gathered."""

    void = frozenset({"meta", "br", "link", "img"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def made(text: str = TEXT, target: str = "sm_90", code: str = "") -> str:
    module = parse_hlo(text)
    return page(module, target, "strict", kernel_steps(module, target), Code("PTX", code))


def test_the_page_is_well_formed_and_asks_for_nothing_from_elsewhere() -> None:
    reader = _Tags()
    reader.feed(made())
    assert reader.open == []
    assert [value for name, value in reader.attributes if name in ("src", "srcset", "data")] == []
    assert all(value.startswith("#hlo-") for name, value in reader.attributes if name == "href")
    assert "url(" not in made()
    assert "@import" not in made()


def test_every_pass_is_named_with_its_change() -> None:
    text = made()
    (_, kernel) = kernel_steps(parse_hlo(TEXT), "sm_90")[0]
    for name in {name for name, _ in kernel.steps}:
        assert name in text
    texts = [kernel.emitted_text(), *(text for _, text in kernel.steps)]
    changed = sum(before != after for before, after in pairwise(texts))
    assert len(re.findall(r'<span class="plus">\+[\d,]+</span> <span class="minus">', text)) == changed > 5
    assert len(kernel.step_ops) == len(kernel.steps) + 1


def test_lines_of_ptx_belong_to_the_hlo_line_of_the_loc_before_them() -> None:
    code = ".loc 1 5 0\ntanh;\n.loc 1 0 0\nnothing;\n.loc 1 6 0\nadd;\n}\nafter\n"
    text = made(code=code)
    for line, place in (("tanh;", 5), ("add;", 6)):
        assert re.search(rf'<span data-h="{place}"><a class="n" href="#hlo-{place}"[^>]*>\d+</a>{line}</span>', text)
    assert "nothing;" in text
    assert not re.search(r"data-h[^\n]*nothing;", text)
    assert not re.search(r"data-h[^\n]*after", text)


def test_lines_of_llvm_ir_lead_to_lines_of_hlo() -> None:
    text = made()
    assert re.search(r'<span data-h="6"><a class="n" href="#hlo-6"[^>]*>\d+</a> +%[^\n]*fadd', text)
    assert '<span id="hlo-6" data-h="6">' in text


def test_names_are_text_and_not_markup() -> None:
    text = made(TEXT.replace("f32[64]", "f32[4194304]"))
    assert "vector&lt;4xf32&gt;" in text
    assert "vector<4xf32>" not in text


def test_a_module_that_code_made_is_printed() -> None:
    builder = ComputationBuilder("e")
    x = builder.parameter(0, parse_hlo(TEXT).entry.root.shape)
    made_by_code = build_module("made_by_code", builder.build(builder.add("tanh", x.shape, [x])))
    assert "HloModule made_by_code" in page(made_by_code, "cpu", "strict", [], Code("assembly", ""))


def test_the_dump_holds_the_page_for_the_cpu_too(tmp_path: Path) -> None:
    file = tmp_path / "small.hlo"
    file.write_text(TEXT)
    assert main(["run", str(file), "--dump-to", str(tmp_path / "d")]) == 0
    text = (tmp_path / "d" / "small.html").read_text()
    assert "assembly" in text
    assert "vectorize-cpu" in text


@pytest.mark.slow
@needs_chromium
def test_a_browser_shows_the_page_and_marks_what_belongs_to_a_line(tmp_path: Path) -> None:
    assert CHROMIUM is not None
    assert main(["compile", "--example", "gelu", "--dump-to", str(tmp_path), "-o", str(tmp_path / "x.ptx")]) == 0
    source = tmp_path / "gelu_example.html"
    lines = example_text("gelu").splitlines()
    (line,) = [number for number, each in enumerate(lines, 1) if " tanh(%" in each]
    # After a click on tanh's line the page says how many lines are marked, on either side.
    probe = (
        f'<script>document.getElementById("hlo-{line}").click();'
        'document.title = "marked " + document.querySelectorAll("#source .on").length + " and "'
        ' + document.querySelectorAll("#kernels .on").length;</script></body>'
    )
    probed = tmp_path / "probed.html"
    probed.write_text(source.read_text().replace("</body>", probe))
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    done = subprocess.run(
        [*command, "--dump-dom", probed.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    found = re.search(r"<title>marked (\d+) and (\d+)</title>", done.stdout)
    assert found is not None, done.stdout[:500]
    assert int(found[1]) == 1
    assert int(found[2]) > 20
    picture = tmp_path / "page.png"
    subprocess.run(
        [*command, "--window-size=1200,800", f"--screenshot={picture}", source.as_uri()],
        capture_output=True,
        timeout=120,
        check=True,
    )
    assert picture.stat().st_size > 50_000, "an empty page makes a small picture"
