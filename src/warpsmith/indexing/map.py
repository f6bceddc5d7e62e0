"""Indexing maps: how the index of one thing follows from the index of another.

`(d0, d1)[s0]{rt0} -> (d0 * 2 + s0, d1), domain: d0 in [0, 9], d1 in [0, 3], s0 in [0, 1], d0 + s0 in [0, 8]`

In: expressions and intervals.  Out: maps.  A map has dimensions
(what is given: an output index, thread and block ids), range variables (what is looped over: reduced extents,
unrolling) and runtime variables (read from memory: the start of a dynamic slice); the latter two are its symbols,
in this order.  Its domain is the box of their bounds, cut by constraints.  Maps are immutable; each operation
gives a new map, or the same object when nothing changed.  "No map is known" is None.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, overload

from warpsmith.errors import IndexingError
from warpsmith.indexing.domain import Domain, simplify_domain
from warpsmith.indexing.expr import Expr, const, dim, symbol
from warpsmith.indexing.interval import Interval
from warpsmith.indexing.ranges import RangeEvaluator
from warpsmith.indexing.simplify import Simplifier
from warpsmith.indexing.walk import Values, evaluate_all, substitute

__all__ = ["GRID_NAMES", "IndexingMap", "Variable", "compose", "variables"]

GRID_NAMES = ("th_x", "th_y", "th_z", "bl_x", "bl_y", "bl_z")
_EMPTY = Interval(0, -1)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a map: its bounds, and a name for printing ("" prints as d0, s0, rt0...)."""

    name: str
    bounds: Interval

    @property
    def size(self) -> int:
        """How many values it may have."""
        return self.bounds.size


def variables(sizes: Iterable[int], names: Sequence[str] = ()) -> tuple[Variable, ...]:
    """Variables over [0, size - 1]."""
    return tuple(Variable(names[i] if i < len(names) else "", Interval.of_size(size)) for i, size in enumerate(sizes))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IndexingMap:
    """A map from dimensions and symbols to a tuple of expressions, with its domain.

    Equality and hash see bounds, results and constraints, not names.  Build one with `IndexingMap.make` (which
    puts it in normal form: a constraint on a bare variable becomes its bound, an impossible one makes the map
    known empty) or `from_sizes`.
    """

    dim_vars: tuple[Variable, ...]
    range_vars: tuple[Variable, ...]
    rt_vars: tuple[Variable, ...]
    results: tuple[Expr, ...]
    constraints: Mapping[Expr, Interval] = field(default_factory=dict[Expr, Interval])
    known_empty: bool = False
    _hash: int = field(default=0, init=False)
    _result_ranges: tuple[Interval, ...] | None = field(default=None, init=False)

    # --- making ---

    @classmethod
    def make(
        cls,
        dim_vars: Iterable[Variable],
        results: Iterable[Expr | int],
        *,
        range_vars: Iterable[Variable] = (),
        rt_vars: Iterable[Variable] = (),
        constraints: Iterable[tuple[Expr, Interval]] = (),
    ) -> IndexingMap:
        """A map in normal form.  A result or constraint that uses a variable the map lacks is an IndexingError."""
        dims, ranges, runtime = tuple(dim_vars), tuple(range_vars), tuple(rt_vars)
        exprs = tuple(const(r) if isinstance(r, int) else r for r in results)
        domain = Domain([v.bounds for v in dims], [v.bounds for v in (*ranges, *runtime)])
        for expr, interval in constraints:
            _check_variables(expr, len(dims), len(ranges) + len(runtime))
            domain.add_constraint(expr, interval)
        for expr in exprs:
            _check_variables(expr, len(dims), len(ranges) + len(runtime))
        return cls(dims, ranges, runtime, exprs)._with_domain(domain)

    @classmethod
    def from_sizes(
        cls, results: Iterable[Expr | int], dim_sizes: Iterable[int], symbol_sizes: Iterable[int] = ()
    ) -> IndexingMap:
        """A map whose variables have bounds [0, size - 1]."""
        return cls.make(variables(dim_sizes), results, range_vars=variables(symbol_sizes))

    @classmethod
    def identity(cls, sizes: Sequence[int]) -> IndexingMap:
        """(d0, d1, ...) -> (d0, d1, ...)."""
        return cls.from_sizes([dim(i) for i in range(len(sizes))], sizes)

    @classmethod
    def constant(cls, values: Iterable[int], sizes: Sequence[int] = ()) -> IndexingMap:
        """(d0, d1, ...) -> the same values everywhere; `constant((), sizes)` is the map to a scalar."""
        return cls.from_sizes([const(v) for v in values], sizes)

    def _with_domain(self, domain: Domain) -> IndexingMap:
        if domain.is_empty:
            return self.emptied()
        n = len(self.range_vars)
        return IndexingMap(
            _rebounded(self.dim_vars, domain.dims),
            _rebounded(self.range_vars, domain.symbols[:n]),
            _rebounded(self.rt_vars, domain.symbols[n:]),
            self.results,
            domain.constraints,
        )

    def emptied(self) -> IndexingMap:
        """The known-empty map with these variables: bounds [0, -1], results 0, no constraints."""
        return IndexingMap(
            tuple(Variable(v.name, _EMPTY) for v in self.dim_vars),
            tuple(Variable(v.name, _EMPTY) for v in self.range_vars),
            tuple(Variable(v.name, _EMPTY) for v in self.rt_vars),
            tuple(const(0) for _ in self.results),
            {},
            True,
        )

    # --- asking ---

    @property
    def symbol_vars(self) -> tuple[Variable, ...]:
        """Range variables, then runtime variables: the symbols in the order of their ids."""
        return self.range_vars + self.rt_vars

    @property
    def num_dims(self) -> int:
        """How many dims (d0, d1...) it has."""
        return len(self.dim_vars)

    @property
    def num_symbols(self) -> int:
        """How many symbols it has: range variables, then runtime variables."""
        return len(self.range_vars) + len(self.rt_vars)

    @property
    def num_results(self) -> int:
        """How many results it has."""
        return len(self.results)

    @property
    def is_identity(self) -> bool:
        """Result i is dimension i, there are no symbols and no constraints."""
        return (
            not self.constraints
            and not self.num_symbols
            and len(self.results) == len(self.dim_vars)
            and all(expr is dim(i) for i, expr in enumerate(self.results))
        )

    def _parts(self) -> tuple[Any, ...]:
        return (
            tuple(v.bounds for v in self.dim_vars),
            tuple(v.bounds for v in self.range_vars),
            tuple(v.bounds for v in self.rt_vars),
            self.results,
            self.known_empty,
        )

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, IndexingMap):
            return NotImplemented
        return hash(self) == hash(other) and self._parts() == other._parts() and self.constraints == other.constraints

    def __hash__(self) -> int:
        if not self._hash:
            object.__setattr__(self, "_hash", hash((self._parts(), frozenset(self.constraints.items()))) or 1)
        return self._hash

    def __reduce__(self) -> tuple[type[IndexingMap], tuple[object, ...]]:
        # Without the remembered hash: expressions hash by identity, which another process doesn't share.
        parts = (self.dim_vars, self.range_vars, self.rt_vars, self.results, dict(self.constraints), self.known_empty)
        return IndexingMap, parts

    def __str__(self) -> str:
        from warpsmith.indexing.map_printer import print_map  # the printer reads this module

        return print_map(self)

    def __repr__(self) -> str:
        return f"<IndexingMap {self}>"

    def _repr_html_(self) -> str:
        from warpsmith.indexing.map_printer import map_html  # the printer reads this module

        return map_html(self)

    def ranges(self, use_constraints: bool = False) -> RangeEvaluator:
        """Ranges of expressions over this map's variables."""
        return RangeEvaluator(
            [v.bounds for v in self.dim_vars],
            [v.bounds for v in self.symbol_vars],
            self.constraints if use_constraints else None,
        )

    def result_ranges(self) -> tuple[Interval, ...]:
        """The range of each result, constraints used."""
        found = self._result_ranges
        if found is None:
            evaluator = self.ranges(use_constraints=True)
            found = tuple(evaluator.range_of(expr) for expr in self.results)
            object.__setattr__(self, "_result_ranges", found)
        return found

    def is_symbol_constrained(self, symbol_id: int) -> bool:
        """Whether a constraint mentions the symbol."""
        return any(expr.symbol_mask >> symbol_id & 1 for expr in self.constraints)

    # --- changing ---

    def with_results(self, results: Iterable[Expr]) -> IndexingMap:
        """The same domain with other results."""
        if self.known_empty:
            return replace(self, results=tuple(const(0) for _ in results))
        exprs = tuple(results)
        for expr in exprs:
            _check_variables(expr, self.num_dims, self.num_symbols)
        return IndexingMap(self.dim_vars, self.range_vars, self.rt_vars, exprs, self.constraints)

    def select_results(self, indices: Iterable[int]) -> IndexingMap:
        """The same domain with some of the results."""
        return self.with_results([self.results[i] for i in indices])

    def add_constraint(self, expr: Expr, interval: Interval) -> IndexingMap:
        """The map on the part of its domain where `expr` lies in `interval`."""
        return self.add_constraints([(expr, interval)])

    def add_constraints(self, pairs: Iterable[tuple[Expr, Interval]]) -> IndexingMap:
        """As `add_constraint`, for several at once."""
        if self.known_empty:
            return self
        domain = self._domain()
        for expr, interval in pairs:
            _check_variables(expr, self.num_dims, self.num_symbols)
            domain.add_constraint(expr, interval)
        return self._with_domain(domain)

    def clear_constraints(self) -> IndexingMap:
        """The map on the whole box of its bounds."""
        return replace(self, constraints={}) if self.constraints else self

    def with_dim_bounds(self, dim_id: int, bounds: Interval) -> IndexingMap:
        """Replaces (doesn't intersect) the bounds of a dimension."""
        changed = list(self.dim_vars)
        changed[dim_id] = Variable(changed[dim_id].name, bounds)
        result = replace(self, dim_vars=tuple(changed))
        return result.emptied() if bounds.is_empty else result

    def with_symbol_bounds(self, symbol_id: int, bounds: Interval) -> IndexingMap:
        """Replaces (doesn't intersect) the bounds of a symbol."""
        changed = list(self.symbol_vars)
        changed[symbol_id] = Variable(changed[symbol_id].name, bounds)
        n = len(self.range_vars)
        result = replace(self, range_vars=tuple(changed[:n]), rt_vars=tuple(changed[n:]))
        return result.emptied() if bounds.is_empty else result

    def renamed(self, dims: Sequence[str] | None = None, range_vars: Sequence[str] | None = None) -> IndexingMap:
        """The same map with other names for its dimensions, its range variables, or both."""
        return replace(
            self,
            dim_vars=self.dim_vars if dims is None else _renamed(self.dim_vars, dims),
            range_vars=self.range_vars if range_vars is None else _renamed(self.range_vars, range_vars),
        )

    def substitute(self, replacements: Mapping[Expr, Expr]) -> IndexingMap:
        """Replaces variables in results and constraints; the variables themselves, and their bounds, stay."""
        if self.known_empty or not replacements:
            return self
        memo: dict[Expr, Expr] = {}
        domain = Domain([v.bounds for v in self.dim_vars], [v.bounds for v in self.symbol_vars])
        for expr, interval in self.constraints.items():
            domain.add_constraint(substitute(expr, replacements, memo), interval)
        return self.with_results([substitute(expr, replacements, memo) for expr in self.results])._with_domain(domain)

    def simplify(self, preserve_points: bool = False) -> IndexingMap:
        """The simplest map with the same domain and the same values on it; `self` when nothing changed.

        `preserve_points` keeps results that have one value as expressions (for bitcasts and reshapes, so that
        dimensions of size 1 stay visible).
        """
        if self.known_empty:
            return self
        results, domain = _simplify_parts(self, preserve_points)
        if domain.is_empty:
            return self.emptied()
        bounds = [v.bounds for v in (*self.dim_vars, *self.symbol_vars)]
        if (
            results == self.results
            and domain.constraints == self.constraints
            and [*domain.dims, *domain.symbols] == bounds
        ):
            return self
        return replace(self, results=results)._with_domain(domain)

    def _domain(self) -> Domain:
        return Domain([v.bounds for v in self.dim_vars], [v.bounds for v in self.symbol_vars], dict(self.constraints))

    def then(self, second: IndexingMap) -> IndexingMap:
        """x -> second(self(x)), not simplified.

        Symbols: range variables of `second`, then of `self`; runtime variables likewise.  Results of `self` must
        lie in the dimension bounds of `second`: that becomes part of the domain.  Another number of results than
        `second` has dimensions is an IndexingError.
        """
        if self.num_results != second.num_dims:
            raise IndexingError(
                f"can't compose maps: the first has {self.num_results} results, the second {second.num_dims} dimensions"
            )
        if second.is_identity and all(
            variable.bounds.contains(interval)
            for variable, interval in zip(second.dim_vars, self.result_ranges(), strict=True)
        ):
            return self
        composed = IndexingMap(
            self.dim_vars, second.range_vars + self.range_vars, second.rt_vars + self.rt_vars, second.results
        )
        if self.known_empty or second.known_empty:
            return composed.emptied()
        own = _shifted_symbols(len(self.range_vars), len(self.rt_vars), len(second.range_vars), len(second.rt_vars))
        theirs = _shifted_symbols(len(second.range_vars), len(second.rt_vars), 0, len(self.range_vars))
        own_memo: dict[Expr, Expr] = {}
        inner = [substitute(expr, own, own_memo) if own else expr for expr in self.results]
        theirs.update({dim(i): expr for i, expr in enumerate(inner)})
        memo: dict[Expr, Expr] = {}
        domain = Domain([v.bounds for v in composed.dim_vars], [v.bounds for v in composed.symbol_vars])
        for expr, interval in second.constraints.items():
            domain.add_constraint(substitute(expr, theirs, memo), interval)
        for expr, interval in self.constraints.items():
            domain.add_constraint(substitute(expr, own, own_memo) if own else expr, interval)
        for expr, variable in zip(inner, second.dim_vars, strict=True):
            domain.add_constraint(expr, variable.bounds)
        results = tuple(substitute(expr, theirs, memo) for expr in second.results)
        return replace(composed, results=results)._with_domain(domain)

    # --- evaluating ---

    def evaluate(self, dims: Sequence[Values], symbols: Sequence[Values] = ()) -> tuple[Values, ...]:
        """The results for values of the variables (integers, or int64 arrays of broadcastable shapes).

        Doesn't ask whether the point is in the domain; see `points.contains`.
        """
        return tuple(evaluate_all(self.results, dims, symbols))


def _check_variables(expr: Expr, num_dims: int, num_symbols: int) -> None:
    if expr.dim_mask >> num_dims or expr.symbol_mask >> num_symbols:
        raise IndexingError(f"{expr} uses a variable that the map ({num_dims} dims, {num_symbols} symbols) lacks")


def _rebounded(old: tuple[Variable, ...], bounds: Sequence[Interval]) -> tuple[Variable, ...]:
    if all(v.bounds is b for v, b in zip(old, bounds, strict=True)):
        return old
    return tuple(v if v.bounds == b else Variable(v.name, b) for v, b in zip(old, bounds, strict=True))


def _renamed(old: tuple[Variable, ...], names: Sequence[str]) -> tuple[Variable, ...]:
    if len(names) != len(old):
        raise IndexingError(f"{len(names)} names for {len(old)} variables")
    return tuple(Variable(name, v.bounds) for v, name in zip(old, names, strict=True))


def _shifted_symbols(ranges: int, runtime: int, range_shift: int, runtime_shift: int) -> dict[Expr, Expr]:
    """Renumbers symbols: range variables move by `range_shift`, runtime variables by both shifts."""
    moved: dict[Expr, Expr] = {}
    if range_shift:
        moved.update({symbol(i): symbol(i + range_shift) for i in range(ranges)})
    if range_shift + runtime_shift:
        moved.update({symbol(ranges + i): symbol(ranges + i + range_shift + runtime_shift) for i in range(runtime)})
    return moved


# Simplifying the same few maps is most of a partitioner's work.  The cache's key, a map, doesn't see names: so it
# holds parts without names.  Nobody may change the Domain that comes out.
@lru_cache(maxsize=4096)
def _simplify_parts(map: IndexingMap, preserve_points: bool) -> tuple[tuple[Expr, ...], Domain]:
    domain = Domain([v.bounds for v in map.dim_vars], [v.bounds for v in map.symbol_vars], dict(map.constraints))
    simplify_domain(domain)
    if domain.is_empty:
        return map.results, domain
    evaluator = RangeEvaluator(domain.dims, domain.symbols, domain.constraints)
    simplifier = Simplifier(evaluator, keep_points=preserve_points)
    return tuple(simplifier.simplify(expr) for expr in map.results), domain


@overload
def compose(first: IndexingMap, second: IndexingMap) -> IndexingMap: ...
@overload
def compose(first: IndexingMap | None, second: IndexingMap | None) -> IndexingMap | None: ...
def compose(first: IndexingMap | None, second: IndexingMap | None) -> IndexingMap | None:
    """x -> second(first(x)), as `IndexingMap.then`; unknown (None) when either is."""
    return None if first is None or second is None else first.then(second)
