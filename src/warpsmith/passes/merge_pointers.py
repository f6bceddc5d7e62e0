"""merge-pointers: arguments that are the same buffer become one, and the others don't alias.

    @main(%a {xla.slice_index = 0}, %b {xla.slice_index = 1}, %out {xla.slice_index = 0})
      ->  @main(%a {llvm.noalias}, %b {llvm.noalias}, %out {llvm.noalias}), and %out's uses are %a's

The entry keeps its signature (it is the launch ABI); other functions lose the doubled parameter and their callers the
operand.  `xla.not_invariant` keeps `noalias` off.
"""

from __future__ import annotations

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.dialects import func

CONTRACT = "bit-exact"


def run(module: Operation) -> None:
    """Rewrite all functions and the calls of those that shrink."""
    shrunk: dict[str, list[int]] = {}
    for op in func.functions(module):
        duplicates = _merge(op)
        if duplicates and "xla.entry" not in op.attributes:
            _drop_arguments(op, duplicates)
            shrunk[op.str_attr("sym_name")] = duplicates
    if not shrunk:
        return
    for op in module.walk():
        if op.name == "func.call" and op.str_attr("callee") in shrunk:
            gone = set(shrunk[op.str_attr("callee")])
            op.set_operands([v for i, v in enumerate(op.operands) if i not in gone])


def _merge(op: Operation) -> list[int]:
    """Merge equal slices, turn slice numbers into `noalias`; the positions of the doubled arguments."""
    first: dict[int, int] = {}
    duplicates: list[int] = []
    attributes = func.arg_attributes(op)
    arguments = op.body.args
    for i, attrs in enumerate(attributes):
        slice_index = attrs.pop("xla.slice_index", None)
        if not isinstance(slice_index, at.IntegerAttr):
            continue
        representative = first.setdefault(slice_index.value, i)
        if representative != i:
            arguments[i].replace_by(arguments[representative])
            duplicates.append(i)
        if attrs.pop("xla.not_invariant", None) is None:
            attrs["llvm.noalias"] = at.UNIT
    func.set_arg_attributes(op, attributes)
    return duplicates


def _drop_arguments(op: Operation, positions: list[int]) -> None:
    gone = set(positions)
    type = func.function_type(op)
    func.set_arg_attributes(op, [a for i, a in enumerate(func.arg_attributes(op)) if i not in gone])
    func.set_function_type(op, [t for i, t in enumerate(type.inputs) if i not in gone], type.results)
    for i in reversed(positions):
        op.body.erase_arg(i)
