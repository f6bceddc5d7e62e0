"""Style and script of the dump's page: no fonts, no libraries, nothing from elsewhere.

The page can be read without the script; with it, a click on a line marks the lines that belong together.
"""

from __future__ import annotations

__all__ = ["SCRIPT", "STYLE"]

STYLE = """
:root { --ink: #1c1e21; --soft: #5f6670; --line: #d9dce1; --paper: #ffffff; --panel: #f5f6f8; --mark: #ffe9a8;
  --plus: #e3f5e5; --plus-ink: #14532d; --minus: #fbe4e4; --minus-ink: #7f1d1d; --link: #0b5cad; --bar: #9db8d9; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e6ea; --soft: #9aa2ad; --line: #3a3f47; --paper: #17191d; --panel: #1f2227; --mark: #5b4a12;
    --plus: #16351f; --plus-ink: #b5e8c2; --minus: #431d20; --minus-ink: #f3bcbc; --link: #7db7f5; --bar: #40618c; } }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--paper); font: 14px/1.45 system-ui, sans-serif; }
header { padding: 12px 20px; border-bottom: 1px solid var(--line); }
h1 { font-size: 20px; margin: 0; }
h2 { font-size: 16px; margin: 20px 0 6px; }
header p { margin: 2px 0 0; color: var(--soft); }
main { display: grid; grid-template-columns: minmax(0, 2fr) minmax(0, 3fr); }
#source { position: sticky; top: 0; height: 100vh; overflow: auto; border-right: 1px solid var(--line);
  padding: 0 0 20px 20px; background: var(--panel); }
#kernels { padding: 0 20px 60px; min-width: 0; }
pre { margin: 0; padding: 6px 0; overflow-x: auto; font: 12px/1.5 ui-monospace, Menlo, Consolas, monospace;
  content-visibility: auto; }
.n { display: inline-block; width: 4.5ch; margin-right: 1.5ch; text-align: right; color: var(--soft);
  user-select: none; text-decoration: none; }
a.n { color: var(--link); }
[data-h] { cursor: pointer; }
.on, :target { background: var(--mark); }
table { border-collapse: collapse; margin: 4px 0 8px; }
td, th { text-align: left; padding: 1px 14px 1px 0; font-weight: normal; vertical-align: top; }
th { color: var(--soft); }
details { border-top: 1px solid var(--line); }
summary { cursor: pointer; padding: 4px 0; display: grid;
  grid-template-columns: 2.5em minmax(10em, 1fr) 7em 9em 9em; column-gap: 10px; align-items: baseline; }
summary.text { display: block; }
summary::-webkit-details-marker { display: none; }
summary .name::before, summary.text::before { content: "\\25B8  "; color: var(--soft); }
details[open] > summary .name::before, details[open] > summary.text::before { content: "\\25BE  "; }
.num { text-align: right; font-variant-numeric: tabular-nums; }
.same { color: var(--soft); padding: 2px 0 2px 0; border-top: 1px solid var(--line); font-size: 13px; }
.time { position: relative; }
.time i { position: absolute; right: 0; bottom: 0; height: 3px; background: var(--bar); }
.plus { background: var(--plus); color: var(--plus-ink); }
.minus { background: var(--minus); color: var(--minus-ink); }
.hunk { color: var(--soft); }
.soft { color: var(--soft); }
@media (max-width: 900px) { main { grid-template-columns: minmax(0, 1fr); } #source { position: static; height: auto;
  max-height: 50vh; } }
"""

SCRIPT = """
document.addEventListener("click", (event) => {
  const line = event.target.closest("[data-h]");
  if (!line) return;
  for (const old of document.querySelectorAll(".on")) old.classList.remove("on");
  const inSource = line.closest("#source") !== null;
  let shown = false;
  for (const other of document.querySelectorAll(`[data-h="${line.dataset.h}"]`)) {
    other.classList.add("on");
    const elsewhere = (other.closest("#source") !== null) !== inSource;
    if (elsewhere && !shown && other.getClientRects().length) {
      other.scrollIntoView({ block: "center" });
      shown = true;
    }
  }
  if (event.target.closest("a.n")) event.preventDefault();
});
"""
