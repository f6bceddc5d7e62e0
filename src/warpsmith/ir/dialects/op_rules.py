"""The rules of each op that its row and the types of its pretty form don't say.

In: an op whose operand and result counts are right.  Out: nothing, or InvalidIr.  One function a family; `RULES` is the
table from op names.  Reference: pipeline sections 3.2 and 4 for xla_gpu, MLIR's dialect documents for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core import llvm_types as lt
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.diagnostics import invalid
from warpsmith.ir.core.operands import operand_groups
from warpsmith.ir.core.rule_help import (
    entry,
    int_attr,
    ints,
    need,
    need_index,
    need_types,
    need_yield,
    types_of,
    types_text,
)
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.types import Type
from warpsmith.ir.dialects.op_rules_memory import MEMORY_RULES, access, bitcast
from warpsmith.ir.dialects.op_rules_nvgpu import NVGPU_RULES

__all__ = ["RULES", "check_call"]

Rule = Callable[[Operation], None]


# ------------------------------------------------------------------------------------------------------- arith and math
def _integers(op: Operation) -> None:
    need(op, op.operands[0], ty.is_integer(op.operands[0].type), "an integer or index")


def _floats(op: Operation) -> None:
    need(op, op.operands[0], ty.is_float(op.operands[0].type), "a float")


def _constant(op: Operation) -> None:
    value = op.attributes["value"]
    if not isinstance(value, (at.IntegerAttr, at.FloatAttr, at.DenseAttr)):
        raise invalid(op, "a value that is no constant", "a constant is an integer, a float, or dense<...>")
    if value.type is not op.results[0].type:
        raise invalid(op, f"a value of type {value.type} for a result of type {op.results[0].type}")


def _compare(of: Callable[[Type], bool], count: int, what: str) -> Rule:
    def rule(op: Operation) -> None:
        for value in op.operands:
            need(op, value, of(value.type), what)
        if not 0 <= int_attr(op, "predicate") < count:
            raise invalid(op, f"predicate {int_attr(op, 'predicate')}", f"predicates are 0 to {count - 1}")

    return rule


def _select(op: Operation) -> None:
    condition, yes, no = op.operands
    need_types(op, [yes.type, no.type], [op.results[0].type] * 2, "the two values")
    if condition.type is not ty.I1 and condition.type is not ty.with_element(yes.type, ty.I1):
        raise invalid(
            op,
            f"a condition of type {condition.type} for values of type {yes.type}",
            "it is i1, or i1 in the values' shape",
        )


_Kind = Callable[[Type], bool]


def _cast(source: _Kind, target: _Kind, change: int) -> Rule:
    """A cast between two kinds; `change` 1 widens, -1 narrows, 0 leaves the width open."""

    def rule(op: Operation) -> None:
        a, b = (ty.element_type(v.type) for v in (op.operands[0], op.results[0]))
        if not source(a) or not target(b):
            raise invalid(op, f"a cast from {a} to {b}")
        if change and (ty.bit_width(b) - ty.bit_width(a)) * change <= 0:
            raise invalid(
                op, f"a cast from {a} to {b}", f"the result is {'wider' if change > 0 else 'narrower'} than the operand"
            )

    return rule


def _is_int(type: Type) -> bool:
    return isinstance(type, ty.IntegerType)


def _is_fp(type: Type) -> bool:
    return isinstance(type, ty.FloatType)


def _index_cast(op: Operation) -> None:
    a, b = (ty.element_type(v.type) for v in (op.operands[0], op.results[0]))
    if not (_is_int(a) and b is ty.INDEX) and not (a is ty.INDEX and _is_int(b)):
        raise invalid(op, f"a cast from {a} to {b}", "one side is index, the other an integer")


# ------------------------------------------------------------------------------------------------- func, calls, modules
def _module(op: Operation) -> None:
    if len(op.regions[0].blocks) != 1 or op.regions[0].blocks[0].args:
        raise invalid(op, "a body that is no single block without arguments")


def _func(op: Operation) -> None:
    type = op.attributes["function_type"]
    if not isinstance(type, at.TypeAttr) or not isinstance(type.type, ty.FunctionType):
        raise invalid(op, "function_type is no function type")
    _arguments(op, type.type.inputs, type.type.results, "func.return")


def _llvm_func(op: Operation) -> None:
    type = op.attributes["function_type"]
    if not isinstance(type, at.TypeAttr) or not isinstance(type.type, lt.LLVMFunctionType):
        raise invalid(op, "function_type is no !llvm.func type")
    results = [] if type.type.result is lt.VOID else [type.type.result]
    _arguments(op, type.type.inputs, results, "llvm.return")


def _arguments(op: Operation, inputs: Sequence[Type], results: Sequence[Type], terminator: str) -> None:
    if not isinstance(op.attributes["sym_name"], at.StringAttr):
        raise invalid(op, "sym_name is no string")
    for key, count in (("arg_attrs", len(inputs)), ("res_attrs", len(results))):
        dicts = op.attributes.get(key)
        if dicts is not None and not (isinstance(dicts, at.ArrayAttr) and len(dicts.items) == count):
            raise invalid(op, f"'{key}' is no array of {count} dictionaries")
    for block in op.regions[0].blocks:
        last = block.last
        if last is not None and last.row.name == terminator:
            need_types(last, types_of(last.operands), results, "the values returned")
    if op.regions[0].blocks:
        need_types(op, types_of(op.regions[0].blocks[0].args), inputs, "the arguments of the body")


def _signature(target: Operation) -> tuple[Sequence[Type], Sequence[Type]] | None:
    found = target.attributes.get("function_type")
    type = found.type if isinstance(found, at.TypeAttr) else None
    if isinstance(type, ty.FunctionType):
        return type.inputs, type.results
    if isinstance(type, lt.LLVMFunctionType):
        return type.inputs, [] if type.result is lt.VOID else [type.result]
    return None


def check_call(op: Operation, key: str, target: Operation) -> None:
    """`op` names `target` by attribute `key`: calls fit the function's type, addresses name a global."""
    signature = _signature(target)
    if key == "combiner" and signature is not None:
        types = types_of(op.operands)
        need_types(op, [*types, *types], signature[0], "the values combined")
        need_types(op, types, signature[1], "the results")
    elif key == "callee":
        if signature is None:
            raise invalid(
                op, f"calls {target.row.name} @{target.str_attr('sym_name')}", "only a function can be called"
            )
        need_types(op, types_of(op.operands), signature[0], "the arguments")
        need_types(op, types_of(op.results), signature[1], "the results")
    elif op.row.name == "memref.get_global":
        type = target.attributes.get("type")
        if not isinstance(type, at.TypeAttr) or type.type is not op.results[0].type:
            raise invalid(op, f"a result of type {op.results[0].type} for a global of another type")


def _memref_global(op: Operation) -> None:
    type = op.attributes["type"]
    if not isinstance(type, at.TypeAttr) or not isinstance(type.type, ty.MemRefType):
        raise invalid(op, "its type is no memref")
    value = op.attributes.get("initial_value")
    if isinstance(value, at.DenseAttr) and (value.type.shape, value.type.element) != (
        type.type.shape,
        type.type.element,
    ):
        raise invalid(op, f"a value of type {value.type} for a global of type {type.type}")


# ----------------------------------------------------------------------------------------------------------- scf and cf
def _for(op: Operation) -> None:
    lower, upper, step = op.operands[:3]
    need(op, lower, lower.type is ty.INDEX or _is_int(lower.type), "an index or integer")
    need_types(op, types_of([upper, step]), [lower.type] * 2, "the upper bound and the step")
    inits = types_of(op.operands[3:])
    need_types(op, types_of(op.results), inits, "the results")
    need_types(op, types_of(entry(op, op.regions[0]).args), [lower.type, *inits], "the arguments of the body")
    need_yield(op, op.regions[0], "scf.yield", inits)


def _if(op: Operation) -> None:
    need(op, op.operands[0], op.operands[0].type is ty.I1, "an i1")
    results = types_of(op.results)
    then, otherwise = op.regions
    if results and not otherwise.blocks:
        raise invalid(op, "results without an else", "an else gives the results when the condition is false")
    for region in (then, otherwise) if otherwise.blocks else (then,):
        if entry(op, region).args:
            raise invalid(op, "a block with arguments", "the blocks of scf.if take none")
        need_yield(op, region, "scf.yield", results)


def _while(op: Operation) -> None:
    before, after = (entry(op, r) for r in op.regions)
    need_types(op, types_of(before.args), types_of(op.operands), "the arguments of the first region")
    last = before.last
    if last is None or last.row.name != "scf.condition":
        raise invalid(op, "a first region that doesn't end in scf.condition")
    need_types(last, types_of(last.operands[1:]), types_of(op.results), "the values passed on")
    need_types(op, types_of(after.args), types_of(op.results), "the arguments of the second region")
    need_yield(op, op.regions[1], "scf.yield", types_of(op.operands))


def _condition(op: Operation) -> None:
    need(op, op.operands[0], op.operands[0].type is ty.I1, "an i1")


def _index_switch(op: Operation) -> None:
    need_index(op, op.operands)
    cases = ints(op, "cases")
    if len(op.regions) != len(cases) + 1:
        raise invalid(op, f"{len(op.regions)} regions for {len(cases)} cases", "one for the default, then one a case")
    if len(set(cases)) != len(cases):
        raise invalid(op, "a case twice")
    for region in op.regions:
        need_yield(op, region, "scf.yield", types_of(op.results))


def _branch(op: Operation) -> None:
    groups = operand_groups(op)
    if len(groups) == 3:
        need(op, groups[0][0], groups[0][0].type is ty.I1, "an i1")
    for values, target in zip(groups[-len(op.successors) :], op.successors, strict=True):
        need_types(op, types_of(values), types_of(target.args), "the values for a block")


# ------------------------------------------------------------------------------------------------------------- xla_gpu
def _map(op: Operation) -> at.IndexingMapAttr:
    found = op.attributes["map"]
    if not isinstance(found, at.IndexingMapAttr):
        raise invalid(op, "attribute 'map' is no indexing map")
    return found


def _loop(op: Operation) -> None:
    map = _map(op).map
    dims, inits = operand_groups(op)
    need_index(op, dims)
    if len(dims) != len(map.dim_vars):
        raise invalid(op, f"{len(dims)} dims for a map with {len(map.dim_vars)}")
    need_types(op, types_of(op.results), types_of(inits), "the results")
    wanted = [ty.INDEX] * (len(map.range_vars) + len(map.results)) + types_of(inits)
    need_types(
        op,
        types_of(entry(op, op.regions[0]).args),
        wanted,
        "the arguments of the body (symbols, map results, values that go round)",
    )
    need_yield(op, op.regions[0], "xla_gpu.yield", types_of(inits))


def _apply_indexing(op: Operation) -> None:
    map = _map(op).map
    need_index(op, op.operands)
    if len(op.operands) != len(map.dim_vars) + len(map.range_vars):
        raise invalid(
            op, f"{len(op.operands)} operands for a map with {len(map.dim_vars)} dims and {len(map.range_vars)} symbols"
        )
    if map.constraints:
        raise invalid(op, "a map with constraints", "apply_indexing only computes; a loop or an if checks constraints")
    need_types(op, types_of(op.results), [ty.INDEX] * len(map.results), "the results")


def _atomic_rmw(op: Operation) -> None:
    dest = op.operands[0].type
    if not isinstance(dest, (ty.TensorType, ty.MemRefType)) or dest.rank != len(op.operands) - 1:
        raise invalid(op, f"{len(op.operands) - 1} indices for {dest}")
    need_index(op, op.operands[1:])
    need_types(op, types_of(op.results), [dest], "the result")
    args = entry(op, op.regions[0]).args
    if len(args) != 1 or ty.element_type(args[0].type) is not dest.element:
        raise invalid(
            op,
            f"a body that takes {types_text(types_of(args))}",
            f"it takes the current value, {dest.element} or a vector of it",
        )
    need_yield(op, op.regions[0], "xla_gpu.yield", [args[0].type])


def _sync(op: Operation) -> None:
    need_types(op, types_of(op.results), types_of(op.operands), "the results")


def _shuffle_reduce(op: Operation) -> None:
    need_types(op, types_of(op.results), types_of(op.operands), "the results")
    distance = int_attr(op, "max_distance")
    if distance < 1 or distance & (distance - 1) or distance >= 64:
        raise invalid(op, f"a largest distance of {distance}", "it is a power of two below the size of a warp")


# ------------------------------------------------------------------------------------------------------------ the table
_FLOAT_OPS = "addf subf mulf divf remf maximumf minimumf maxnumf minnumf negf".split()
_INT_OPS = (
    "addi subi muli divsi divui ceildivsi ceildivui floordivsi remsi remui andi ori xori shli shrui shrsi "
    "maxsi minsi maxui minui mulsi_extended mului_extended addui_extended"
).split()
_MATH_INT_OPS = ("absi", "ctpop", "ctlz", "cttz", "ipowi")

RULES: dict[str, Rule] = {
    **{f"arith.{name}": _floats for name in _FLOAT_OPS},
    **{f"arith.{name}": _integers for name in _INT_OPS},
    **{f"math.{name}": _integers for name in _MATH_INT_OPS},
    "arith.constant": _constant,
    "arith.cmpi": _compare(ty.is_integer, 10, "an integer or index"),
    "arith.cmpf": _compare(ty.is_float, 16, "a float"),
    "arith.select": _select,
    "arith.extf": _cast(_is_fp, _is_fp, 1),
    "arith.truncf": _cast(_is_fp, _is_fp, -1),
    "arith.extsi": _cast(_is_int, _is_int, 1),
    "arith.extui": _cast(_is_int, _is_int, 1),
    "arith.trunci": _cast(_is_int, _is_int, -1),
    "arith.sitofp": _cast(_is_int, _is_fp, 0),
    "arith.uitofp": _cast(_is_int, _is_fp, 0),
    "arith.fptosi": _cast(_is_fp, _is_int, 0),
    "arith.fptoui": _cast(_is_fp, _is_int, 0),
    "arith.bitcast": bitcast,
    "arith.index_cast": _index_cast,
    "arith.index_castui": _index_cast,
    **MEMORY_RULES,
    **NVGPU_RULES,
    "builtin.module": _module,
    "func.func": _func,
    "llvm.func": _llvm_func,
    "memref.global": _memref_global,
    "scf.for": _for,
    "scf.if": _if,
    "scf.while": _while,
    "scf.condition": _condition,
    "scf.index_switch": _index_switch,
    "cf.br": _branch,
    "cf.cond_br": _branch,
    "llvm.br": _branch,
    "llvm.cond_br": _branch,
    "xla_gpu.loop": _loop,
    "xla_gpu.apply_indexing": _apply_indexing,
    "xla_gpu.atomic_rmw": _atomic_rmw,
    "xla_gpu.sync_threads": _sync,
    "xla_gpu.shuffle_reduce": _shuffle_reduce,
    "xla_gpu.predicated_insert": access(1, 2, (ty.TensorType,), "a tensor"),
    "xla_gpu.predicated_extract": access(0, 1, (ty.TensorType,), "a tensor"),
}
"""The rule of each op that has one."""
