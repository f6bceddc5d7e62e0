"""inline: calls of functions with one user, or that share a callee with the caller, become the callee's body.

    %e = xla_gpu.pure_call @gelu(%in, %i)        %x = tensor.extract %in[%i]
                                            ->   %e = arith.mulf %x, %x

Functions are taken callees first; calls found in an inlined body are looked at too; CSE runs on each function between
the rounds, so that equal calls have become one before uses are counted.  Private functions left without users go.  The
rules are `_decide`'s: inlining a function that is called with different indices would multiply
code.  `inline-calls` runs the same with a rule more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from warpsmith.ir.core.ssa import Block, Operation, Region, Value
from warpsmith.ir.dialects import func
from warpsmith.passes import cse
from warpsmith.passes.support.capabilities import capabilities
from warpsmith.passes.support.symbols import is_private, references, symbol_uses

CONTRACT = "bit-exact"

_ROUNDS = 4
_MAX_OPS = 4000  # of a block after inlining
_SMALL = 100  # inlined always where a call keeps a loop from becoming vectors


def run(module: Operation) -> None:
    """Inline in every function of `module`."""
    Inliner(module).run()


def callee_of(op: Operation) -> str | None:
    """The function that a call names; None for another op."""
    return op.str_attr("callee") if op.name in ("xla_gpu.pure_call", "func.call") else None


@dataclass(slots=True)
class _Counts:
    """What the rules ask of one function: its pure calls by callee a region, and its ops a block (nested ones too)."""

    calls: dict[Region, Counter[str]] = field(default_factory=dict[Region, Counter[str]])
    ops: Counter[Block] = field(default_factory=Counter[Block])

    def add(self, op: Operation, sign: int = 1) -> None:
        """Count `op` in all regions and blocks around it."""
        name = op.str_attr("callee") if op.name == "xla_gpu.pure_call" else None
        block = op.block
        while block is not None and block.region is not None:
            self.ops[block] += sign
            if name is not None:
                self.calls.setdefault(block.region, Counter())[name] += sign
            parent = block.region.parent
            block = parent.block if parent is not None and parent.name != "func.func" else None


class Inliner:
    """One run over a module.  `also(callee, uses)` may allow what the rules on uses refuse."""

    def __init__(self, module: Operation, also: Callable[[Operation, int], bool] | None = None) -> None:
        self.also = also
        self.functions = {name: op for name, op in func.symbols(module).items() if op.name == "func.func"}
        self.uses = symbol_uses(module)
        self.inlines_small = capabilities(module).calls_stop_vectors

    def run(self) -> None:
        """Inline into every function, callees first."""
        for name in self._callees_first():
            function = self.functions.get(name)
            if function is not None and function.regions[0].blocks:
                self._function(name, function)
        for name, op in list(self.functions.items()):
            if is_private(op) and not self.uses[name]:
                self._drop(name, op)

    def _callees_first(self) -> list[str]:
        """All functions, each after those that it calls (cycles cut anywhere)."""
        calls = {
            name: [c for inner in op.walk() for c in references(inner) if c in self.functions]
            for name, op in self.functions.items()
        }
        order: list[str] = []
        seen: set[str] = set()
        for root in self.functions:
            stack = [(root, False)]
            while stack:
                name, entered = stack.pop()
                if entered:
                    order.append(name)
                elif name not in seen:
                    seen.add(name)
                    stack.append((name, True))
                    stack.extend((c, False) for c in reversed(calls[name]) if c not in seen)
        return order

    def _function(self, name: str, function: Operation) -> None:
        for number in range(_ROUNDS):
            calls = [op for op in function.walk() if callee_of(op) is not None]
            if not calls and not number:
                return
            before = Counter(filter(None, map(callee_of, calls)))
            cse.run(function)
            calls = [op for op in function.walk() if callee_of(op) is not None]
            self.uses -= before - Counter(filter(None, map(callee_of, calls)))
            if not self._round(name, function, calls):
                return
        cse.run(function)

    def _round(self, name: str, function: Operation, calls: list[Operation]) -> bool:
        counts = _Counts()
        for op in function.walk():
            if op is not function:
                counts.add(op)
        changed = False
        calls.reverse()
        while calls:  # an inlined body's calls come next
            call = calls.pop()
            callee_name = call.str_attr("callee")
            callee = self.functions.get(callee_name)
            if callee is None or callee is function or callee_name == name or len(callee.regions[0].blocks) != 1:
                continue
            cloned = not (is_private(callee) and self.uses[callee_name] == 1)
            if not self._decide(call, callee, cloned, counts):
                continue
            inner = _copied(call, callee) if cloned else _moved(call, callee)
            for op in inner:
                counts.add(op)
            counts.add(call, -1)
            call.erase()
            calls.extend(op for op in reversed(inner) if callee_of(op) is not None)
            self.uses[callee_name] -= 1
            if cloned:
                for op in inner:
                    self.uses.update(references(op))
            else:
                del self.functions[callee_name]
                callee.erase()
            changed = True
        return changed

    def _decide(self, call: Operation, callee: Operation, cloned: bool, counts: _Counts) -> bool:
        """The rules, in their order."""
        if "noinline" in call.attributes:
            return False
        if "no_compute" in callee.attributes:
            return True
        if call.name != "xla_gpu.pure_call" or call.block is None or call.block.region is None:
            return False
        count, overlap = 1, False
        if cloned:
            around = counts.calls[call.block.region]
            count = around[call.str_attr("callee")]
            overlap = any(around[op.str_attr("callee")] > 0 for op in callee.walk() if op.name == "xla_gpu.pure_call")
        allowed = self.also is not None and self.also(callee, self.uses[call.str_attr("callee")])
        if count > 1 and not allowed:
            return False
        size = op_count(callee)
        if count * size + counts.ops[call.block] > _MAX_OPS:
            return False
        return allowed or not cloned or overlap or (self.inlines_small and size <= _SMALL)

    def _drop(self, name: str, op: Operation) -> None:
        """Erase a function without users, and the functions that only it used."""
        waiting = [(name, op)]
        while waiting:
            name, op = waiting.pop()
            if self.functions.pop(name, None) is None:
                continue
            for inner in op.walk():
                for used in references(inner):
                    self.uses[used] -= 1
                    target = self.functions.get(used)
                    if target is not None and is_private(target) and self.uses[used] <= 0:
                        waiting.append((used, target))
            op.erase()


def op_count(function: Operation) -> int:
    """The ops in a function, nested ones too."""
    return sum(1 for _ in function.walk()) - 1


def _copied(call: Operation, callee: Operation) -> list[Operation]:
    """Put a copy of the body before `call`, whose results it replaces.  Gives the new ops, nested ones too."""
    body = callee.body
    mapping: dict[Value, Value] = dict(zip(body.args, call.operands, strict=True))
    new: list[Operation] = []
    assert call.block is not None
    for op in body:
        if op is not body.last:
            copy = call.block.insert_before(call, op.clone(mapping))
            new.extend(copy.walk())
    _replace(call, [mapping.get(v, v) for v in body.terminator.operands])
    return new


def _moved(call: Operation, callee: Operation) -> list[Operation]:
    """As `_copied`, for the only call: the body itself moves and leaves an empty function."""
    body = callee.body
    for arg, value in zip(body.args, call.operands, strict=True):
        arg.name = ""
        arg.replace_by(value)
    _replace(call, body.terminator.operands)
    body.terminator.erase()
    new: list[Operation] = []
    for op in body:
        op.move_before(call)
        new.extend(op.walk())
    return new


def _replace(call: Operation, values: Sequence[Value]) -> None:
    for old, value in zip(call.results, values, strict=True):
        old.name = ""  # the callee's own names say more than `pure_call`
        old.replace_by(value)
