"""The llvm and nvvm dialects: one op for each LLVM instruction or intrinsic that we print (`backends/llvm/text.py`)."""

from __future__ import annotations

from warpsmith.ir.core.ssa import Effect, OpRow, Trait

_READ = ((Effect.READ, "addr"),)
_WRITE = ((Effect.WRITE, "addr"),)


def _binary(*names: str) -> list[OpRow]:
    return [
        OpRow(f"llvm.{n}", ("lhs", "rhs"), ("res",), optional=("fastmathFlags", "overflowFlags"), syntax="same")
        for n in names
    ]


def _casts(*names: str) -> list[OpRow]:
    return [OpRow(f"llvm.{n}", ("arg",), ("res",), syntax="cast") for n in names]


def _intrinsics(operands: tuple[str, ...], *names: str) -> list[OpRow]:
    return [
        OpRow(f"llvm.intr.{n}", operands, ("res",), optional=("is_zero_poison", "fastmathFlags"), syntax="llvm_intr")
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
        syntax="llvm_func",
    ),
    OpRow("llvm.return", ("arg?",), (), traits=Trait.TERMINATOR, syntax="return"),
    OpRow(
        "llvm.call",
        ("operands*",),
        ("result?",),
        attributes=("callee",),
        traits=Trait.CALL,
        effects=((Effect.UNKNOWN, None),),
        syntax="llvm_call",
    ),
    OpRow(
        "llvm.br",
        ("destOperands*",),
        (),
        successors=1,
        traits=Trait.TERMINATOR,
        optional=("loop_annotation",),
        syntax="cf_br",
    ),
    OpRow(
        "llvm.cond_br",
        ("condition", "trueDestOperands*", "falseDestOperands*"),
        (),
        optional=("operandSegmentSizes", "branch_weights", "loop_annotation"),
        successors=2,
        traits=Trait.TERMINATOR,
        syntax="cf_cond_br",
    ),
    OpRow("llvm.unreachable", (), (), traits=Trait.TERMINATOR, syntax="nullary"),
    OpRow("llvm.mlir.constant", (), ("res",), attributes=("value",), traits=Trait.CONSTANT, syntax="llvm_constant"),
    OpRow("llvm.mlir.poison", (), ("res",), syntax="llvm_nullary"),
    OpRow("llvm.mlir.zero", (), ("res",), syntax="llvm_nullary"),
    OpRow("llvm.mlir.addressof", (), ("res",), attributes=("global_name",), syntax="llvm_addressof"),
    OpRow(
        "llvm.mlir.global",
        (),
        (),
        attributes=("sym_name", "global_type", "linkage"),
        optional=("value", "constant", "addr_space", "alignment", "unnamed_addr"),
        regions=1,
        traits=Trait.SYMBOL,
        syntax="llvm_global",
    ),
    OpRow(
        "llvm.alloca",
        ("arraySize",),
        ("res",),
        attributes=("elem_type",),
        optional=("alignment",),
        effects=((Effect.ALLOCATE, None),),
        syntax="llvm_alloca",
    ),
    OpRow(
        "llvm.getelementptr",
        ("base", "dynamicIndices*"),
        ("res",),
        attributes=("elem_type", "rawConstantIndices"),
        optional=("inbounds", "noWrapFlags"),
        syntax="llvm_gep",
    ),
    OpRow(
        "llvm.load",
        ("addr",),
        ("res",),
        optional=("alignment", "invariant", "nontemporal", "ordering"),
        effects=_READ,
        syntax="llvm_load",
    ),
    OpRow(
        "llvm.store",
        ("value", "addr"),
        (),
        optional=("alignment", "nontemporal", "ordering"),
        effects=_WRITE,
        syntax="llvm_store",
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
        syntax="llvm_atomicrmw",
    ),
    OpRow(
        "llvm.cmpxchg",
        ("ptr", "cmp", "val"),
        ("res",),
        attributes=("success_ordering", "failure_ordering"),
        effects=((Effect.READ, "ptr"), (Effect.WRITE, "ptr")),
        syntax="llvm_cmpxchg",
    ),
    OpRow("llvm.addrspacecast", ("arg",), ("res",), syntax="cast"),
    OpRow("llvm.extractelement", ("vector", "position"), ("res",), syntax="llvm_extractelement"),
    OpRow("llvm.insertelement", ("vector", "value", "position"), ("res",), syntax="llvm_insertelement"),
    OpRow("llvm.shufflevector", ("v1", "v2"), ("res",), attributes=("mask",), syntax="llvm_shufflevector"),
    OpRow("llvm.extractvalue", ("container",), ("res",), attributes=("position",), syntax="llvm_extractvalue"),
    OpRow("llvm.insertvalue", ("container", "value"), ("res",), attributes=("position",), syntax="llvm_insertvalue"),
    OpRow("llvm.icmp", ("lhs", "rhs"), ("res",), attributes=("predicate",), syntax="llvm_icmp"),
    OpRow(
        "llvm.fcmp",
        ("lhs", "rhs"),
        ("res",),
        attributes=("predicate",),
        optional=("fastmathFlags",),
        syntax="llvm_fcmp",
    ),
    OpRow(
        "llvm.select",
        ("condition", "trueValue", "falseValue"),
        ("res",),
        optional=("fastmathFlags",),
        syntax="llvm_select",
    ),
    *_binary("add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "and", "or", "xor", "shl", "lshr", "ashr"),
    *_binary("fadd", "fsub", "fmul", "fdiv", "frem"),
    OpRow("llvm.fneg", ("operand",), ("res",), optional=("fastmathFlags",), syntax="same"),
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
        syntax="llvm_masked",
    ),
    OpRow(
        "llvm.intr.masked.store",
        ("value", "addr", "mask"),
        (),
        attributes=("alignment",),
        effects=_WRITE,
        syntax="llvm_masked_store",
    ),
    OpRow(
        "llvm.intr.masked.gather",
        ("ptrs", "mask", "pass_thru*"),
        ("res",),
        attributes=("alignment",),
        effects=((Effect.READ, "ptrs"),),
        syntax="llvm_masked",
    ),
    *(
        OpRow(f"nvvm.read.ptx.sreg.{name}.{d}", (), ("res",), optional=("range", "xla.range"), syntax="llvm_nullary")
        for name in ("tid", "ctaid", "ntid", "nctaid")
        for d in "xyz"
    ),
    OpRow("nvvm.read.ptx.sreg.laneid", (), ("res",), optional=("range",), syntax="llvm_nullary"),
    OpRow("nvvm.barrier0", (), (), effects=((Effect.BARRIER, None),), syntax="nullary"),
    OpRow(
        "nvvm.shfl.sync",
        ("thread_mask", "val", "offset", "mask_and_clamp"),
        ("res",),
        attributes=("kind",),
        effects=((Effect.BARRIER, None),),
        syntax="nvvm_shfl",
    ),
]
