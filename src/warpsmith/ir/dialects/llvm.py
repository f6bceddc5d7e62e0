"""The llvm and nvvm dialects: one op for each LLVM instruction or intrinsic that we print (`backends/llvm/text.py`)."""

from __future__ import annotations

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core import llvm_types as lt
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.attributes import Attribute
from warpsmith.ir.core.diagnostics import invalid
from warpsmith.ir.core.operands import SEGMENTS
from warpsmith.ir.core.ssa import Effect, Operation, OpRow, Trait
from warpsmith.ir.dialects import forms, llvm_forms, scf_forms
from warpsmith.ir.dialects.func import arguments_rule
from warpsmith.ir.dialects.scf import branch_rule
from warpsmith.ir.text.format import Form, described

_READ = ((Effect.READ, "addr"),)
_WRITE = ((Effect.WRITE, "addr"),)


# --------------------------------------------------------------------------------------------------------------- rules
def _llvm_func(op: Operation) -> None:
    type = op.attributes["function_type"]
    if not isinstance(type, at.TypeAttr) or not isinstance(type.type, lt.LLVMFunctionType):
        raise invalid(op, "function_type is no !llvm.func type")
    results = [] if type.type.result is lt.VOID else [type.type.result]
    arguments_rule(op, type.type.inputs, results, "llvm.return")


def _no_bundles(op: Operation) -> dict[str, Attribute]:
    return {SEGMENTS: at.dense_array((len(op.operands), 0), ty.I32), "op_bundle_sizes": at.dense_array((), ty.I32)}


# ---------------------------------------------------------------------------------------------------------------- rows
def _binary(*names: str) -> list[OpRow]:
    return [
        OpRow(f"llvm.{n}", ("lhs", "rhs"), ("res",), optional=("fastmathFlags", "overflowFlags"), form=forms.SAME)
        for n in names
    ]


def _casts(*names: str) -> list[OpRow]:
    return [OpRow(f"llvm.{n}", ("arg",), ("res",), form=forms.CAST) for n in names]


def _intrinsics(operands: tuple[str, ...], *names: str) -> list[OpRow]:
    return [
        OpRow(f"llvm.intr.{n}", operands, ("res",), optional=("is_zero_poison", "fastmathFlags"), form=forms.INTRINSIC)
        for n in names
    ]


ROWS = [
    OpRow(
        "llvm.func",
        (),
        (),
        attributes=("sym_name", "function_type"),
        optional=("linkage", "CConv", "arg_attrs", "passthrough", "nvvm.kernel"),
        regions=1,
        traits=Trait.ISOLATED | Trait.SYMBOL,
        verify=_llvm_func,
        form=Form(llvm_forms.print_func, llvm_forms.parse_func),
    ),
    OpRow("llvm.return", ("arg?",), (), traits=Trait.TERMINATOR, form=forms.YIELD),
    OpRow(
        "llvm.call",
        ("operands*",),
        ("result?",),
        attributes=("callee",),
        traits=Trait.CALL,
        effects=((Effect.UNKNOWN, None),),
        form=forms.CALL,
        implied=_no_bundles,
    ),
    OpRow(
        "llvm.br",
        ("destOperands*",),
        (),
        successors=1,
        traits=Trait.TERMINATOR,
        optional=("loop_annotation",),
        verify=branch_rule,
        form=Form(scf_forms.print_br, scf_forms.parse_br),
    ),
    OpRow(
        "llvm.cond_br",
        ("condition", "trueDestOperands*", "falseDestOperands*"),
        (),
        optional=("operandSegmentSizes", "branch_weights", "loop_annotation"),
        successors=2,
        traits=Trait.TERMINATOR,
        verify=branch_rule,
        form=Form(scf_forms.print_cond_br, scf_forms.parse_cond_br),
    ),
    OpRow("llvm.unreachable", (), (), traits=Trait.TERMINATOR, form=forms.BARE),
    OpRow(
        "llvm.mlir.constant",
        (),
        ("res",),
        attributes=("value",),
        traits=Trait.CONSTANT,
        form=described("(<attr:value>){} : type(r0)"),
    ),
    OpRow("llvm.mlir.poison", (), ("res",), form=forms.TYPED),
    OpRow("llvm.mlir.zero", (), ("res",), form=forms.TYPED),
    OpRow(
        "llvm.mlir.addressof",
        (),
        ("res",),
        attributes=("global_name",),
        form=described(" <sym:global_name>{} : type(r0)"),
    ),
    OpRow(
        "llvm.mlir.global",
        (),
        (),
        attributes=("sym_name", "global_type", "linkage"),
        optional=("value", "constant", "addr_space", "alignment", "unnamed_addr"),
        regions=1,
        traits=Trait.SYMBOL,
        form=Form(llvm_forms.print_global, llvm_forms.parse_global),
    ),
    OpRow(
        "llvm.alloca",
        ("arraySize",),
        ("res",),
        attributes=("elem_type",),
        optional=("alignment",),
        effects=((Effect.ALLOCATE, None),),
        form=described(" $arraySize x <type:elem_type>{} : (type(arraySize)) -> type(r0)"),
    ),
    OpRow(
        "llvm.getelementptr",
        ("base", "dynamicIndices*"),
        ("res",),
        attributes=("elem_type", "rawConstantIndices"),
        optional=("inbounds", "noWrapFlags"),
        form=described("<wrap:noWrapFlags?> $base[$dynamicIndices*|i32:rawConstantIndices]{} : %fn, <type:elem_type>"),
    ),
    OpRow(
        "llvm.load",
        ("addr",),
        ("res",),
        optional=("alignment", "invariant", "nontemporal", "ordering"),
        effects=_READ,
        form=described(" $addr<unit:invariant?>{} : type(addr) -> type(r0)"),
    ),
    OpRow(
        "llvm.store",
        ("value", "addr"),
        (),
        optional=("alignment", "nontemporal", "ordering"),
        effects=_WRITE,
        form=described(" $value, $addr{} : type(value), type(addr)"),
    ),
    OpRow(
        "llvm.intr.prefetch",
        ("addr",),
        (),
        attributes=("rw", "hint", "cache"),
        effects=((Effect.WRITE, "addr"),),
    ),
    OpRow(
        "llvm.atomicrmw",
        ("ptr", "val"),
        ("res",),
        attributes=("bin_op", "ordering"),
        effects=((Effect.READ, "ptr"), (Effect.WRITE, "ptr")),
        form=described(" <atomic_op:bin_op> $ptr, $val <ordering:ordering>{} : type(ptr), type(val)", "res=val"),
    ),
    OpRow(
        "llvm.cmpxchg",
        ("ptr", "cmp", "val"),
        ("res",),
        attributes=("success_ordering", "failure_ordering"),
        effects=((Effect.READ, "ptr"), (Effect.WRITE, "ptr")),
        form=described(
            " $ptr, $cmp, $val <ordering:success_ordering> <ordering:failure_ordering>{} : type(ptr), type(val)",
            "cmp=val res=pair(val)",
        ),
    ),
    OpRow(
        "llvm.fence",
        (),
        (),
        attributes=("ordering", "syncscope"),
        effects=((Effect.BARRIER, None),),
        form=described(" syncscope(<attr:syncscope>) <ordering:ordering>{}"),
    ),
    OpRow("llvm.addrspacecast", ("arg",), ("res",), form=forms.CAST),
    OpRow(
        "llvm.extractelement",
        ("vector", "position"),
        ("res",),
        form=described(" $vector[$position : type(position)]{} : type(vector)", "res=elem(vector)"),
    ),
    OpRow(
        "llvm.insertelement",
        ("vector", "value", "position"),
        ("res",),
        form=described(
            " $value, $vector[$position : type(position)]{} : type(vector)", "value=elem(vector) res=vector"
        ),
    ),
    OpRow(
        "llvm.shufflevector",
        ("v1", "v2"),
        ("res",),
        attributes=("mask",),
        form=described(" $v1, $v2 <i32s:mask>{} : type(v1)", "v2=v1 res=lanes(v1)"),
    ),
    OpRow(
        "llvm.extractvalue",
        ("container",),
        ("res",),
        attributes=("position",),
        form=described(" $container<ints:position>{} : type(container)", "res=part(container)"),
    ),
    OpRow(
        "llvm.insertvalue",
        ("container", "value"),
        ("res",),
        attributes=("position",),
        form=described(" $value, $container<ints:position>{} : type(container)", "value=part(container) res=container"),
    ),
    OpRow(
        "llvm.icmp",
        ("lhs", "rhs"),
        ("res",),
        attributes=("predicate",),
        form=described(" <icmp:predicate> $lhs, $rhs{} : type(lhs)", "rhs=lhs res=mask(lhs)"),
    ),
    OpRow(
        "llvm.fcmp",
        ("lhs", "rhs"),
        ("res",),
        attributes=("predicate",),
        optional=("fastmathFlags",),
        form=described(" <fcmp:predicate> $lhs, $rhs{} : type(lhs)", "rhs=lhs res=mask(lhs)"),
    ),
    OpRow(
        "llvm.select",
        ("condition", "trueValue", "falseValue"),
        ("res",),
        optional=("fastmathFlags",),
        form=described(
            " $condition, $trueValue, $falseValue{} : type(condition), type(trueValue)",
            "falseValue=trueValue res=trueValue",
        ),
    ),
    *_binary("add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "and", "or", "xor", "shl", "lshr", "ashr"),
    *_binary("fadd", "fsub", "fmul", "fdiv", "frem"),
    OpRow("llvm.fneg", ("operand",), ("res",), optional=("fastmathFlags",), form=forms.SAME),
    *_casts(
        "fpext",
        "fptrunc",
        "sext",
        "zext",
        "trunc",
        "sitofp",
        "uitofp",
        "fptosi",
        "fptoui",
        "bitcast",
        "ptrtoint",
        "inttoptr",
    ),
    *_intrinsics(("a", "b"), "maximum", "minimum", "maxnum", "minnum", "smax", "smin", "umax", "umin", "copysign"),
    *_intrinsics(("in",), "fabs", "ceil", "floor", "trunc", "roundeven", "round", "sqrt"),
    *_intrinsics(("in",), "ctpop", "ctlz", "cttz", "fptosi.sat"),
    *_intrinsics(("a", "b", "c"), "fma"),
    OpRow(
        "llvm.intr.masked.load",
        ("addr", "mask", "pass_thru*"),
        ("res",),
        attributes=("alignment",),
        effects=((Effect.READ, "addr"),),
        form=described(" $*{} : %fn"),
    ),
    OpRow(
        "llvm.intr.masked.store",
        ("value", "addr", "mask"),
        (),
        attributes=("alignment",),
        effects=_WRITE,
        form=described(" $value, $addr, $mask{} : type(value), type(mask) into type(addr)"),
    ),
    OpRow(
        "llvm.intr.masked.gather",
        ("ptrs", "mask", "pass_thru*"),
        ("res",),
        attributes=("alignment",),
        effects=((Effect.READ, "ptrs"),),
        form=described(" $*{} : %fn"),
    ),
    *(
        OpRow(f"nvvm.read.ptx.sreg.{name}.{d}", (), ("res",), optional=("range", "xla.range"), form=forms.TYPED)
        for name in ("tid", "ctaid", "ntid", "nctaid")
        for d in "xyz"
    ),
    OpRow("nvvm.read.ptx.sreg.laneid", (), ("res",), optional=("range",), form=forms.TYPED),
    OpRow("nvvm.barrier0", (), (), effects=((Effect.BARRIER, None),), form=forms.BARE),
    OpRow(
        "nvvm.shfl.sync",
        ("thread_mask", "val", "offset", "mask_and_clamp"),
        ("res",),
        attributes=("kind",),
        effects=((Effect.BARRIER, None),),
        form=described(
            " <shfl_kind:kind> $thread_mask, $val, $offset, $mask_and_clamp{} : type(val) -> type(res)",
            "thread_mask=i32 offset=i32 mask_and_clamp=i32",
        ),
    ),
]
