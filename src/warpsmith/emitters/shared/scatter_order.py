"""The code of a scatter that keeps the order of its updates: each place of the output is one thread's.

    thread of an element of a slice:  another slice before this one has an element there?  then done
                                      what = output[there]
                                      for each slice from this one on that has an element there, in order:
                                          what = combine(what, its update)
                                      output[there] = what

Nobody else touches the place, so that nothing needs an atomic step and the result is the interpreter's, bit by bit, for
any combiner.  An update that overwrites is written by the thread of the last slice, without a walk.  How a thread finds
the slices:

- `by_search`: it looks through all index vectors.  For few slices, of any form; slices may overlap in part.
- `by_runs`: equal index vectors are neighbours.  A thread looks at the one before, and where the next is equal, too,
  finds the end of the run by halving.

In: the functions of the fusion and a scatter.  Out: the outputs, written.  Upstream has no such emitter (5.5.1 of the
reference: an expander removes such scatters first); `hlo_passes/scatter_order.py` prepares the scatter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warpsmith.emitters.elemental import Values
from warpsmith.emitters.elemental.emitter import Indices
from warpsmith.emitters.kernel.grid import over_ids
from warpsmith.emitters.shared.scatter_body import ScatterBody, update_map
from warpsmith.indexing import bitcast_map
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.core.types import I1
from warpsmith.ir.dialects import arith, gpu, scf

__all__ = ["OrderedScatter"]


class OrderedScatter(ScatterBody):
    """Threads take elements of the updates; the first one of a place takes all of them."""

    # -- what both ways share
    def by_runs(self, tensors: Sequence[Value]) -> list[Value]:
        """Where equal index vectors are neighbours."""
        return self._each(tensors, self._in_run)

    def by_search(self, tensors: Sequence[Value]) -> list[Value]:
        """Where they are anywhere."""
        return self._each(tensors, self._among_all)

    def _each(
        self, tensors: Sequence[Value], own: Callable[[Indices, Indices, Sequence[Value]], Sequence[Value]]
    ) -> list[Value]:
        """`own` takes an element's index, its slice's position, and the tensors."""
        e, scatter = self.e, self.scatter
        map = over_ids(update_map(scatter, self.launch), self.launch)
        rank = map.num_results
        names = [f"update_dim{i}" for i in range(rank)]
        loop = gpu.loop(e.b, self.ids, map, tensors, result_names=names)
        with e.inside(loop.body):
            args = loop.body.args[map.num_symbols :]
            index = tuple(args[:rank])
            position = tuple(index[d] for d in scatter.scatter_dims)
            gpu.yield_(e.b, own(index, position, args[rank:]))
        return list(loop.results)

    def _over(
        self,
        start: Value,
        end: Value,
        carried: Sequence[Value],
        body: Callable[[Value, Sequence[Value]], Sequence[Value]],
    ) -> list[Value]:
        """A loop over slices."""
        e = self.e
        loop = scf.for_(e.b, start, end, e.index(1), carried, "slice")
        with e.inside(loop.body):
            number, *now = loop.body.args
            scf.yield_(e.b, body(number, now))
        return list(loop.results)

    def _grouped(self, flat: Sequence[Value], like: Sequence[Values]) -> list[Values]:
        """Scalars by operand."""
        left = iter(flat)
        return [tuple(next(left) for _ in parts) for parts in like]

    def _walk(
        self,
        tensors: Sequence[Value],
        place: Indices,
        bounds: tuple[Value, Value],
        step: Callable[[Value, list[Values]], list[Values]],
    ) -> list[Value]:
        """Combine what slices within the bounds have for a place; `step` takes a slice's number and what was before."""
        current = self.read(tensors, place)

        def body(number: Value, now: Sequence[Value]) -> list[Value]:
            return [part for parts in step(number, self._grouped(now, current)) for part in parts]

        found = self._over(*bounds, [part for parts in current for part in parts], body)
        return self.write(tensors, place, self._grouped(found, current))

    # -- equal index vectors are neighbours
    def _in_run(self, index: Indices, position: Indices, tensors: Sequence[Value]) -> list[Value]:
        e, scatter = self.e, self.scatter
        (here,) = position
        numbers = self.numbers(position)
        window = [index[d] for d in scatter.window_dims]
        place = self.place(numbers, position, window)
        last = e.index(scatter.slices - 1)
        following = arith.binary(e.b, "addi", here, e.index(1))
        if scatter.overwrites:
            neighbour, at_end = arith.binary(e.b, "minsi", following, last), arith.cmpi(e.b, "eq", here, last)
        else:
            before = arith.binary(e.b, "subi", here, e.index(1))
            neighbour, at_end = arith.binary(e.b, "maxsi", before, e.index(0)), arith.cmpi(e.b, "eq", here, e.index(0))
        alone = arith.binary(e.b, "xori", self._same(numbers, neighbour), e.constant(1, I1))
        owns = arith.binary(e.b, "andi", self.fits(numbers), arith.binary(e.b, "ori", alone, at_end))

        def combine() -> list[Value]:
            if scatter.overwrites:
                return self.write(tensors, place, self.updates(index))
            end = self._end(numbers, following)
            return self._walk(tensors, place, (here, end), step)

        def step(number: Value, now: list[Values]) -> list[Values]:
            return self.combined(now, self.updates(self.update_index((number,), window)))

        return self.e.only_if(owns, tensors, combine)

    def _same(self, numbers: Sequence[Value], slice: Value) -> Value:
        """Whether another slice goes to the same place."""
        e = self.e
        found: Value | None = None
        for mine, other in zip(numbers, self.numbers((slice,)), strict=True):
            test = arith.cmpi(e.b, "eq", mine, other)
            found = test if found is None else arith.binary(e.b, "andi", found, test)
        return e.constant(1, I1) if found is None else found

    def _end(self, numbers: Sequence[Value], following: Value) -> Value:
        """The first slice behind a run; `following` comes after the run's first."""
        e, count = self.e, self.scatter.slices
        exists = arith.cmpi(e.b, "slt", following, e.index(count))
        near = self._same(numbers, arith.binary(e.b, "minsi", following, e.index(count - 1)))

        def halve() -> list[Value]:
            def body(_: Value, now: Sequence[Value]) -> list[Value]:
                low, high = now  # `low` is in the run, `high` isn't
                middle = arith.binary(e.b, "shrui", arith.binary(e.b, "addi", low, high), e.index(1))
                inside = self._same(numbers, middle)
                return [arith.select(e.b, inside, middle, low), arith.select(e.b, inside, high, middle)]

            rounds = e.index(count.bit_length())
            return self._over(e.index(0), rounds, [following, e.index(count)], body)[1:]

        return self.e.only_if(arith.binary(e.b, "andi", exists, near), [following], halve)[0]

    # -- slices anywhere
    def _among_all(self, index: Indices, position: Indices, tensors: Sequence[Value]) -> list[Value]:
        e, scatter = self.e, self.scatter
        numbers = self.numbers(position)
        place = self.place(numbers, position, [index[d] for d in scatter.window_dims])
        sizes = [scatter.update_dims[d] for d in scatter.scatter_dims]
        here = e.apply(bitcast_map(sizes, None, (scatter.slices,), None), position)[0]
        count = e.index(scatter.slices)
        following = arith.binary(e.b, "addi", here, e.index(1))
        bounds = (following, count) if scatter.overwrites else (e.index(0), here)

        def covers(number: Value, now: Sequence[Value]) -> list[Value]:
            return [arith.binary(e.b, "ori", now[0], self._covers(self.position(number), place)[0])]

        def combine() -> list[Value]:
            (other,) = self._over(*bounds, [e.constant(0, I1)], covers)
            return self.e.only_if(arith.binary(e.b, "xori", other, e.constant(1, I1)), tensors, finish)

        def finish() -> list[Value]:
            if scatter.overwrites:
                return self.write(tensors, place, self.updates(index))
            return self._walk(tensors, place, (here, count), step)

        def step(number: Value, now: list[Values]) -> list[Values]:
            at = self.position(number)
            inside, window = self._covers(at, place)

            def add() -> list[Value]:
                new = self.combined(now, self.updates(self.update_index(at, window)))
                return [part for parts in new for part in parts]

            return self._grouped(self.e.only_if(inside, [part for parts in now for part in parts], add), now)

        return self.e.only_if(self.fits(numbers), tensors, combine)

    def _covers(self, position: Indices, place: Indices) -> tuple[Value, Indices]:
        """Whether a slice that fits has an element for a place, and which, by `kept_dims`."""
        e, scatter = self.e, self.scatter
        numbers = self.numbers(position)
        start = self.place(numbers, position, [e.index(0) for _ in scatter.kept_dims])
        found = self.fits(numbers)
        moved = {*scatter.index_map, *(d for d, _ in scatter.batching)}
        within: dict[int, Value] = {}
        for d, (there, begin) in enumerate(zip(place, start, strict=True)):
            if d not in moved:
                within[d] = there
                continue
            within[d] = arith.binary(e.b, "subi", there, begin)
            test = arith.cmpi(e.b, "ult", within[d], e.index(scatter.window[d]))
            found = arith.binary(e.b, "andi", found, test)
        return found, tuple(within[d] for d in scatter.kept_dims)
