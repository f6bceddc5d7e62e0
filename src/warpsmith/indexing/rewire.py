"""Changes to a map's variables: dropping, rescaling, turning symbols into dimensions.

In: a map.  Out: a map with the same points, seen through other variables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from warpsmith.indexing.expr import Const, Expr, Mod, Var, dim, symbol
from warpsmith.indexing.interval import Interval
from warpsmith.indexing.map import IndexingMap, Variable
from warpsmith.indexing.walk import substitute

__all__ = [
    "drop_variables",
    "range_vars_to_dims",
    "remove_unused_symbols",
    "remove_unused_vars",
    "rescale_symbols",
    "symbols_to_dims",
    "unused_variables",
]


def unused_variables(map: IndexingMap, dims: bool = True) -> tuple[bool, ...]:
    """For each dimension, then each symbol: whether it can go without changing anything.

    A constraint that only unused variables occur in counts as unused too.  `dims=False` keeps all dimensions.
    """
    used_dims = 0 if dims else -1
    used_symbols = 0
    for expr in map.results:
        used_dims |= expr.dim_mask
        used_symbols |= expr.symbol_mask
    # A constraint that touches a used variable makes all of its variables used, and so on.
    waiting, changed = list(map.constraints), True
    while changed and waiting:
        touching = [e for e in waiting if e.dim_mask & used_dims or e.symbol_mask & used_symbols]
        waiting = [e for e in waiting if not (e.dim_mask & used_dims or e.symbol_mask & used_symbols)]
        for expr in touching:
            used_dims |= expr.dim_mask
            used_symbols |= expr.symbol_mask
        changed = bool(touching)
    return (
        *(not used_dims >> i & 1 for i in range(map.num_dims)),
        *(not used_symbols >> i & 1 for i in range(map.num_symbols)),
    )


def drop_variables(map: IndexingMap, unused: Sequence[bool]) -> IndexingMap:
    """Removes variables found by `unused_variables`, with the constraints that mention them."""
    if not any(unused):
        return map
    d, n = map.num_dims, len(map.range_vars)
    kept_dims = [i for i in range(d) if not unused[i]]
    kept_symbols = [i for i in range(map.num_symbols) if not unused[d + i]]
    renumber: dict[Expr, Expr] = {dim(old): dim(new) for new, old in enumerate(kept_dims)}
    renumber.update({symbol(old): symbol(new) for new, old in enumerate(kept_symbols)})
    kept_dim_mask, kept_symbol_mask = sum(1 << i for i in kept_dims), sum(1 << i for i in kept_symbols)
    constraints = {
        expr: interval
        for expr, interval in map.constraints.items()
        if not (expr.dim_mask & ~kept_dim_mask or expr.symbol_mask & ~kept_symbol_mask)
    }
    return _renumbered(
        replace(map, constraints=constraints),
        tuple(map.dim_vars[i] for i in kept_dims),
        tuple(map.range_vars[i] for i in kept_symbols if i < n),
        tuple(map.rt_vars[i - n] for i in kept_symbols if i >= n),
        renumber,
    )


def remove_unused_symbols(map: IndexingMap) -> IndexingMap:
    """Drops symbols that occur neither in results nor in constraints that matter."""
    return drop_variables(map, unused_variables(map, dims=False)) if map.num_symbols else map


def remove_unused_vars(map: IndexingMap) -> tuple[IndexingMap, tuple[bool, ...]]:
    """As `remove_unused_symbols`, dimensions too.  Also returns which variables went (dims, then symbols)."""
    unused = unused_variables(map)
    return drop_variables(map, unused), unused


def rescale_symbols(map: IndexingMap) -> IndexingMap:
    """Rewrites `s` to `s * c + k` for each constraint `s mod c in [k, k]`, which then holds by itself."""
    result = map
    for expr, interval in map.constraints.items():
        if not (isinstance(expr, Mod) and _is_symbol(expr.lhs) and type(expr.rhs) is Const and interval.is_point):
            continue
        s, c, k = expr.lhs, expr.rhs.value, interval.lower
        # Rescaling the same symbol before has changed this constraint; it then stays as it is.
        if expr not in result.constraints or not 0 <= k < c or not isinstance(s, Var):
            continue
        old = result.symbol_vars[s.id].bounds
        bounds = Interval(-((k - old.lower) // c), (old.upper - k) // c)
        constraints = {e: i for e, i in result.constraints.items() if e is not expr}
        result = replace(result, constraints=constraints).with_symbol_bounds(s.id, bounds).substitute({s: s * c + k})
    return result


def _is_symbol(expr: Expr) -> bool:
    return isinstance(expr, Var) and expr.is_symbol


def symbols_to_dims(map: IndexingMap) -> IndexingMap:
    """All symbols become dimensions, after the present ones."""
    moved: dict[Expr, Expr] = {symbol(i): dim(map.num_dims + i) for i in range(map.num_symbols)}
    return _renumbered(map, map.dim_vars + map.symbol_vars, (), (), moved)


def range_vars_to_dims(map: IndexingMap, ids: Sequence[int]) -> IndexingMap:
    """The picked range variables become dimensions, after the present ones; the others close ranks."""
    n = len(map.range_vars)
    kept = [i for i in range(n) if i not in ids]
    moved: dict[Expr, Expr] = {symbol(old): symbol(new) for new, old in enumerate([*kept, *range(n, map.num_symbols)])}
    moved.update({symbol(old): dim(map.num_dims + i) for i, old in enumerate(ids)})
    dim_vars = map.dim_vars + tuple(map.range_vars[i] for i in ids)
    return _renumbered(map, dim_vars, tuple(map.range_vars[i] for i in kept), map.rt_vars, moved)


def _renumbered(
    map: IndexingMap,
    dim_vars: tuple[Variable, ...],
    range_vars: tuple[Variable, ...],
    rt_vars: tuple[Variable, ...],
    renumber: Mapping[Expr, Expr],
) -> IndexingMap:
    memo: dict[Expr, Expr] = {}
    return replace(
        map,
        dim_vars=dim_vars,
        range_vars=range_vars,
        rt_vars=rt_vars,
        results=tuple(substitute(expr, renumber, memo) for expr in map.results),
        constraints={substitute(expr, renumber, memo): interval for expr, interval in map.constraints.items()},
    )
