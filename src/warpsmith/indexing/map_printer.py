"""Text of maps.

In: a map.  Out: text that `parser` reads.  After the variables' bounds come the constraints, sorted as text.  A map
without points prints `KNOWN EMPTY`, the absent map `UNDEFINED`.
"""

from __future__ import annotations

from html import escape

from warpsmith.indexing.expr_printer import Style, print_expr
from warpsmith.indexing.map import IndexingMap

__all__ = ["map_html", "print_map", "variable_names"]


def variable_names(map: IndexingMap) -> tuple[list[str], list[str]]:
    """The names that dimensions and symbols print with: their own, or d0, s0, rt0... by position."""
    dims = [v.name or f"d{i}" for i, v in enumerate(map.dim_vars)]
    ranges = [v.name or f"s{i}" for i, v in enumerate(map.range_vars)]
    return dims, ranges + [v.name or f"rt{i}" for i, v in enumerate(map.rt_vars)]


def print_map(map: IndexingMap | None, style: Style = "mlir") -> str:
    """The text of a map with its domain."""
    if map is None:
        return "UNDEFINED"
    if map.known_empty:
        return "KNOWN EMPTY"
    dims, symbols = variable_names(map)
    ranges, runtime = symbols[: len(map.range_vars)], symbols[len(map.range_vars) :]
    head = f"({', '.join(dims)})"
    head += f"[{', '.join(ranges)}]" if ranges else ""
    head += f"{{{', '.join(runtime)}}}" if runtime else ""
    results = ", ".join(print_expr(expr, dims, symbols, style) for expr in map.results)
    bounds = [
        f"{name} in {variable.bounds}"
        for name, variable in zip(dims + symbols, map.dim_vars + map.symbol_vars, strict=True)
    ]
    bounds += sorted(
        f"{print_expr(expr, dims, symbols, style)} in {interval}" for expr, interval in map.constraints.items()
    )
    return f"{head} -> ({results})" + (f", domain: {', '.join(bounds)}" if bounds else "")


def map_html(map: IndexingMap) -> str:
    """A table for notebooks: a row a variable with its bounds, a result, and a constraint."""
    if map.known_empty:
        return "<code>KNOWN EMPTY</code>"
    dims, symbols = variable_names(map)
    rows = [
        ("variable", name, f"in {variable.bounds}")
        for name, variable in zip(dims + symbols, map.dim_vars + map.symbol_vars, strict=True)
    ]
    rows += [("result", str(i), print_expr(expr, dims, symbols)) for i, expr in enumerate(map.results)]
    rows += [("where", print_expr(expr, dims, symbols), f"in {bounds}") for expr, bounds in map.constraints.items()]
    cells = ("".join(f"<td><code>{escape(cell)}</code></td>" for cell in row) for row in rows)
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"
