"""convert-to-llvm: what is left becomes the llvm and nvvm dialects.

    func.func @main(%in: memref<8xf32>, %i: index)              llvm.func @main(%in: !llvm.ptr, %i: i32)
      %x = memref.load %in[%i]                            ->      %p = llvm.getelementptr %in[%i] ; %x = llvm.load %p
      %y = arith.addf %x, %x : f32                                %y = llvm.fadd %x, %x : f32

Ops with a one-to-one form (`OpRow.llvm`) are renamed where they stand; the others have a function in `_TABLE`.  `index`
becomes an integer of the kernel's index width, a memref a bare pointer, an f8 or f4 an integer of its width.  A GPU
entry takes one pointer an argument.  A CPU entry takes (argv, begin, end): an array of pointers, and the work groups
that this call runs (the pass lower-workgroups made that loop).  Reference: pipeline.md 6.10, 7.1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpsmith.errors import LoweringError
from warpsmith.ir import attributes as at
from warpsmith.ir.builder import Builder
from warpsmith.ir.core import REGISTRY, Operation, Region, Value, row
from warpsmith.ir.dialects import func, gpu, vector
from warpsmith.ir.effects import constant_of
from warpsmith.ir.format_kinds import ATOMIC_KINDS, LLVM_ATOMICS, LLVM_ORDERINGS
from warpsmith.ir.types import (
    BF16,
    I1,
    I32,
    I64,
    INDEX,
    VOID,
    ComplexType,
    FloatType,
    FunctionType,
    IntegerType,
    MemRefType,
    ShapedType,
    Type,
    VectorType,
    bit_width,
    element_type,
    integer,
    llvm_array,
    llvm_function,
    llvm_struct,
    numpy_dtype,
    pointer,
    with_element,
)
from warpsmith.ir.types import vector as vector_type

NAME = "convert-to-llvm"
CONTRACT = "bit-exact"

# No bf16 arithmetic is left on a CPU, and where the processor has none LLVM goes through f32 even to select or to move.
_NATIVE_FLOATS = {"f16", "bf16", "f32", "f64"}
DYNAMIC_GEP = -(1 << 31)  # stands for "see the operand" in rawConstantIndices
_ATOMICS = dict(
    zip(
        "addf addi andi ori xori maxs maxu mins minu".split(),
        "fadd add _and _or _xor max umax min umin".split(),
        strict=True,
    )
)
_SHUFFLES = {"xor": "bfly", "up": "up", "down": "down", "idx": "idx"}
GEP_INBOUNDS = 3  # the bits of noWrapFlags that MLIR prints as `inbounds`


def run(module: Operation) -> None:
    """Rewrite the module; LoweringError names an op without a form here."""
    functions = list(func.functions(module))
    lowering = _Lowering(module, func.entry(module)) if functions else None
    if lowering is not None:
        for op in list(module.body):
            if op.name == "memref.global":
                lowering.global_(op)
            elif op.name == "func.func":
                lowering.function(op)


class _Lowering:
    """The state of one module's conversion."""

    def __init__(self, module: Operation, entry: Operation) -> None:
        self.module = module
        self.on_cpu = _target(entry) == "cpu"
        bits = entry.attributes.get("warpsmith.index_bits")
        self.index = integer(bits.value if isinstance(bits, at.IntegerAttr) else 64)
        self.types: dict[Type, Type] = {INDEX: self.index}

    # -- types
    def type(self, old: Type) -> Type:
        found = self.types.get(old)
        if found is None:
            found = self.types[old] = self._convert(old)
        return found

    def _convert(self, old: Type) -> Type:
        match old:
            case MemRefType():
                return pointer(old.space)
            case FloatType() if old.text not in _NATIVE_FLOATS or (self.on_cpu and old is BF16):
                return integer(old.width)
            case ComplexType():
                return llvm_struct((old.element, old.element))
            case VectorType():
                return with_element(old, self.type(old.element))
            case _:
                return old

    def storage(self, type: Type) -> Type:
        """The type of one element in memory: i1 takes a byte."""
        element = self.type(element_type(type))
        return integer(8) if isinstance(element, IntegerType) and element.width == 1 else element

    # -- functions
    def function(self, op: Operation) -> None:
        is_entry = "xla.entry" in op.attributes
        name = op.str_attr("sym_name")
        old = func.function_type(op)
        body = op.body
        attributes: dict[str, at.Attribute] = {
            "sym_name": at.string(name),
            "linkage": at.opaque("#llvm.linkage<external>"),
        }
        if self.on_cpu and is_entry:
            result: Type = VOID
            self._cpu_arguments(op)
        else:
            result = self._result_type(old)
            for argument in body.args:
                argument.type = self.type(argument.type)
            if is_entry:
                attributes["nvvm.kernel"] = at.UNIT
                attributes["arg_attrs"] = at.array(self._kernel_argument(a) for a in func.arg_attributes(op))
            else:
                attributes["linkage"] = at.opaque("#llvm.linkage<internal>")
        # The kernel's context stays with it, so that this dump alone can be launched.
        attributes.update((k, v) for k, v in op.attributes.items() if k.startswith("warpsmith.") or k == "xla.entry")
        inputs = [a.type for a in body.args]
        attributes["function_type"] = at.type_attr(llvm_function(result, inputs))
        op.row = row("llvm.func")
        op.attributes = attributes
        for block in op.regions[0].blocks:
            for argument in block.args:
                argument.type = self.type(argument.type)
        for nested in list(op.walk()):
            if nested is not op:
                self.op(nested)

    def _result_type(self, old: FunctionType) -> Type:
        results = [self.type(t) for t in old.results]
        return VOID if not results else results[0] if len(results) == 1 else llvm_struct(results)

    def _kernel_argument(self, attributes: dict[str, at.Attribute]) -> at.DictAttr:
        kept = {k: v for k, v in attributes.items() if k.startswith("llvm.")}
        return at.dictionary(kept)

    def _cpu_arguments(self, op: Operation) -> None:
        """(argv, begin, end) in place of the memref arguments; the pointers are loaded once, at the top."""
        body = op.body
        buffers = [a for a in body.args if isinstance(a.type, MemRefType)]
        begin, end = body.args[len(buffers) :]
        b = Builder.at_start(body)
        argv = body.add_arg(pointer(), "argv")
        for i, old in enumerate(buffers):
            address = self.gep(b, argv, pointer(), (), (i,))
            loaded = b.op1("llvm.load", (address,), pointer(), {"alignment": at.integer_attr(8, I64)}, old.name)
            old.replace_by(loaded)
        body.args = [argv, begin, end]
        for i, argument in enumerate(body.args):
            argument.index = i
            argument.type = self.type(argument.type)

    def global_(self, op: Operation) -> None:
        type = op.attributes["type"]
        assert isinstance(type, at.TypeAttr)
        assert isinstance(type.type, MemRefType)
        element = self.storage(type.type)
        attributes: dict[str, at.Attribute] = {
            "sym_name": op.attributes["sym_name"],
            "global_type": at.type_attr(llvm_array(type.type.elements, element)),
            "linkage": at.opaque("#llvm.linkage<internal>"),
            "alignment": at.integer_attr(16, I64),
        }
        if type.type.space:
            attributes["addr_space"] = at.integer_attr(type.type.space, I32)
        initial = op.attributes.get("initial_value")
        if isinstance(initial, at.DenseAttr):
            flat = vector_type((type.type.elements,), element)
            attributes["value"] = (
                at.dense(initial.array.reshape(-1).view(numpy_dtype(element)), flat)
                if not initial.is_splat
                else at.dense(initial.array.reshape(-1)[:1].view(numpy_dtype(element))[0], flat)
            )
            attributes["constant"] = at.UNIT
        op.row = row("llvm.mlir.global")
        op.attributes = attributes
        op.regions = [Region()]
        op.regions[0].parent = op

    # -- ops
    def op(self, op: Operation) -> None:
        for result in op.results:
            result.type = self.type(result.type)
        handler = _TABLE.get(op.name)
        if handler is not None:
            handler(self, op)
            return
        name = op.row.llvm
        if name is None:
            if op.row.dialect in ("llvm", "nvvm"):
                return
            raise LoweringError(
                f"{op.name} has no LLVM form{_where(op)}",
                help="an earlier pass should have expanded it; see the pass list of the target",
            )
        op.row = REGISTRY[name]
        op.attributes.pop("xla.range", None)
        op.attributes.pop("fastmath", None)
        if name in ("llvm.intr.ctlz", "llvm.intr.cttz"):
            op.attributes["is_zero_poison"] = at.boolean(False)

    def constant(self, op: Operation) -> None:
        value = op.attributes["value"]
        op.row = REGISTRY["llvm.mlir.constant"]
        type = op.result.type
        if isinstance(value, at.IntegerAttr) and value.type is INDEX:
            op.attributes["value"] = at.integer_attr(value.value, type)
        elif isinstance(value, at.FloatAttr) and isinstance(type, IntegerType):
            op.attributes["value"] = at.integer_attr(value.bits, type)
        elif isinstance(value, at.DenseAttr) and value.type is not type:
            assert isinstance(type, ShapedType)
            flat = value.array
            target = numpy_dtype(type.element)
            if isinstance(value.type.element, FloatType):
                flat = flat.view(target)
            op.attributes["value"] = at.dense(flat.astype(target), type)

    def gep(
        self,
        b: Builder,
        base: Value,
        element: Type,
        dynamic: tuple[Value, ...],
        constants: tuple[int, ...],
        *,
        inbounds: bool = True,
    ) -> Value:
        attributes: dict[str, at.Attribute] = {
            "elem_type": at.type_attr(element),
            "rawConstantIndices": at.dense_array(constants, I32),
        }
        if inbounds:
            attributes["noWrapFlags"] = at.integer_attr(GEP_INBOUNDS, I32)
        return b.op1("llvm.getelementptr", (base, *dynamic), base.type, attributes)

    def address(self, b: Builder, base: Value, index: Value, element: Type, *, masked: bool = False) -> Value:
        """The address of an element; of a masked access it may lie outside the buffer where no lane is active."""
        return self.gep(b, base, element, (index,), (DYNAMIC_GEP,), inbounds=not masked)

    def access_attributes(self, op: Operation, element: Type) -> dict[str, at.Attribute]:
        """Alignment (one element's unless the op claims more) and the flags that LLVM knows."""
        attributes = {k: op.attributes[k] for k in ("invariant", "nontemporal", "alignment") if k in op.attributes}
        if self.on_cpu:
            attributes.pop("invariant", None)
        attributes.setdefault("alignment", at.integer_attr(max(1, bit_width(element) // 8), I64))
        return attributes

    def load(self, op: Operation) -> None:
        base, index = op.operands
        b = Builder.before(op)
        element = self.storage(op.result.type)
        pointer_ = self.address(b, base, index, element)
        type = op.result.type
        stored = with_element(type, element)
        value = b.op1("llvm.load", (pointer_,), stored, self.access_attributes(op, element), op.result.name)
        if stored is not type:
            value = b.op1("llvm.trunc", (value,), type)
        op.replace_by((value,))

    def store(self, op: Operation) -> None:
        value, base, index = op.operands
        b = Builder.before(op)
        element = self.storage(value.type)
        stored = with_element(value.type, element)
        if stored is not value.type:
            value = b.op1("llvm.zext", (value,), stored)
        b.create("llvm.store", (value, self.address(b, base, index, element)), (), self.access_attributes(op, element))
        op.erase()

    def atomic_rmw(self, op: Operation) -> None:
        value, base, index = op.operands
        b = Builder.before(op)
        kind = ATOMIC_KINDS[op.int_attr("kind")]
        if kind not in _ATOMICS:
            raise LoweringError(f"{op.name} {kind} has no LLVM form{_where(op)}")
        attributes = {
            "bin_op": at.integer_attr(LLVM_ATOMICS.index(_ATOMICS[kind]), I64),
            "ordering": at.integer_attr(LLVM_ORDERINGS.index("monotonic"), I64),
        }
        pointer_ = self.address(b, base, index, self.storage(value.type))
        op.replace_by((b.op1("llvm.atomicrmw", (pointer_, value), value.type, attributes),))

    def compare_exchange(self, op: Operation) -> None:
        """By the bits: that is how LLVM compares."""
        base, index, expected, new = op.operands
        b = Builder.before(op)
        type = expected.type
        bits = integer(bit_width(type))
        monotonic = at.integer_attr(LLVM_ORDERINGS.index("monotonic"), I64)
        old, wanted = (v if v.type is bits else b.op1("llvm.bitcast", (v,), bits) for v in (expected, new))
        pointer_ = self.address(b, base, index, self.storage(type))
        attributes = {"success_ordering": monotonic, "failure_ordering": monotonic}
        packed = b.op1("llvm.cmpxchg", (pointer_, old, wanted), llvm_struct((bits, I1)), attributes)
        seen = b.op1("llvm.extractvalue", (packed,), bits, {"position": at.dense_array((0,))})
        done = b.op1("llvm.extractvalue", (packed,), I1, {"position": at.dense_array((1,))})
        op.replace_by((seen if type is bits else b.op1("llvm.bitcast", (seen,), type), done))

    def masked_load(self, op: Operation) -> None:
        base, index, mask, fallback = op.operands
        b = Builder.before(op)
        element = self.storage(op.result.type)
        where = self.address(b, base, index, element, masked=True)
        attributes = {"alignment": at.integer_attr(max(1, bit_width(element) // 8), I32)}
        value = self._widened(b, fallback, element)
        loaded = b.op1("llvm.intr.masked.load", (where, mask, value), value.type, attributes)
        op.replace_by((self._narrowed(b, loaded, op.result.type),))

    def masked_store(self, op: Operation) -> None:
        base, index, mask, value = op.operands
        b = Builder.before(op)
        element = self.storage(value.type)
        where = self.address(b, base, index, element, masked=True)
        attributes = {"alignment": at.integer_attr(max(1, bit_width(element) // 8), I32)}
        b.create("llvm.intr.masked.store", (self._widened(b, value, element), where, mask), (), attributes)
        op.erase()

    def gather(self, op: Operation) -> None:
        base, offset, indices, mask, fallback = op.operands
        b = Builder.before(op)
        element = self.storage(op.result.type)
        start = self.address(b, base, offset, element)
        lanes = op.result.type
        assert isinstance(lanes, VectorType)
        attributes: dict[str, at.Attribute] = {
            "elem_type": at.type_attr(element),
            "rawConstantIndices": at.dense_array((DYNAMIC_GEP,), I32),
        }
        pointers = b.op1("llvm.getelementptr", (start, indices), with_element(lanes, pointer()), attributes)
        value = self._widened(b, fallback, element)
        alignment = {"alignment": at.integer_attr(max(1, bit_width(element) // 8), I32)}
        loaded = b.op1("llvm.intr.masked.gather", (pointers, mask, value), value.type, alignment)
        op.replace_by((self._narrowed(b, loaded, op.result.type),))

    def _widened(self, b: Builder, value: Value, element: Type) -> Value:
        stored = with_element(value.type, element)
        return value if stored is value.type else b.op1("llvm.zext", (value,), stored)

    def _narrowed(self, b: Builder, value: Value, type: Type) -> Value:
        return value if value.type is type else b.op1("llvm.trunc", (value,), type)

    def index_cast(self, op: Operation) -> None:
        source, target = bit_width(op.operands[0].type), bit_width(op.result.type)
        if source == target:
            op.replace_by(op.operands)
            return
        signed = op.name == "arith.index_cast"
        op.row = REGISTRY["llvm.trunc" if source > target else "llvm.sext" if signed else "llvm.zext"]
        op.attributes.pop("xla.range", None)

    def bitcast(self, op: Operation) -> None:
        if op.operands[0].type is op.result.type:
            op.replace_by(op.operands)
        else:
            op.row = REGISTRY["llvm.bitcast"]

    def gpu_id(self, op: Operation) -> None:
        if self.on_cpu:
            raise LoweringError(f"{op.name} on a CPU target")
        register = {"gpu.thread_id": "tid", "gpu.block_id": "ctaid", "gpu.block_dim": "ntid", "gpu.grid_dim": "nctaid"}[
            op.name
        ]
        b = Builder.before(op)
        extent = op.attributes.get("xla.range")
        attributes = {"xla.range": extent} if extent is not None else None
        value = b.op1(f"nvvm.read.ptx.sreg.{register}.{gpu.dimension(op)}", (), I32, attributes, op.result.name)
        if self.index is not I32:
            value = b.op1("llvm.sext", (value,), self.index)
        op.replace_by((value,))

    def barrier(self, op: Operation) -> None:
        op.row = REGISTRY["nvvm.barrier0"]

    def warp_shuffle(self, op: Operation) -> None:
        """All lanes of the warp take part; lanes beyond the last one give a thread its own value."""
        value, offset, width = op.operands
        size = constant_of(width)
        mode = op.attributes["mode"]
        if size is None or op.results[1].users or not isinstance(mode, at.OpaqueAttr):
            raise LoweringError(f"{op.name} over an unknown width, or with its second result in use{_where(op)}")
        kind = next(k for k in _SHUFFLES if k in mode.text)
        b = Builder.before(op)
        # Towards lower lanes the clamp is the first lane, else the last one.
        everyone, clamp = self._int(b, -1, I32), self._int(b, 0 if kind == "up" else size.value - 1, I32)
        attributes = {"kind": at.opaque(f"#nvvm<shfl_kind {_SHUFFLES[kind]}>")}
        new = b.op1("nvvm.shfl.sync", (everyone, value, offset, clamp), value.type, attributes)
        op.results[0].replace_by(new)
        op.erase()

    def vector_extract(self, op: Operation) -> None:
        b = Builder.before(op)
        new = b.op1("llvm.extractelement", (op.operands[0], self._position(b, op, 1)), op.result.type)
        op.replace_by((new,))

    def vector_insert(self, op: Operation) -> None:
        b = Builder.before(op)
        new = b.op1("llvm.insertelement", (op.operands[1], op.operands[0], self._position(b, op, 2)), op.result.type)
        op.replace_by((new,))

    def _position(self, b: Builder, op: Operation, first: int) -> Value:
        static = op.attributes["static_position"]
        assert isinstance(static, at.DenseArrayAttr)
        if static.values[0] == vector.DYNAMIC:
            return op.operands[first]
        return self._int(b, static.values[0], I64)

    def _int(self, b: Builder, value: int, type: Type) -> Value:
        return b.op1("llvm.mlir.constant", (), type, {"value": at.integer_attr(value, type)})

    def broadcast(self, op: Operation) -> None:
        b = Builder.before(op)
        type = op.result.type
        assert isinstance(type, VectorType)
        poison = b.op1("llvm.mlir.poison", (), type)
        first = b.op1("llvm.insertelement", (poison, op.operands[0], self._int(b, 0, I64)), type)
        mask = at.dense_array([0] * type.elements, I32)
        op.replace_by((b.op1("llvm.shufflevector", (first, poison), type, {"mask": mask}),))

    def step(self, op: Operation) -> None:
        type = op.result.type
        assert isinstance(type, VectorType)
        value = at.dense(np.arange(type.elements), type)
        op.replace_by((Builder.before(op).op1("llvm.mlir.constant", (), type, {"value": value}),))

    def create_mask(self, op: Operation) -> None:
        """Lane number < count."""
        b = Builder.before(op)
        type = op.result.type
        assert isinstance(type, VectorType)
        count = op.operands[0]
        wide = vector_type(type.shape, count.type)
        lanes = b.op1("llvm.mlir.constant", (), wide, {"value": at.dense(np.arange(type.elements), wide)})
        poison = b.op1("llvm.mlir.poison", (), wide)
        first = b.op1("llvm.insertelement", (poison, count, self._int(b, 0, I64)), wide)
        splat = b.op1("llvm.shufflevector", (first, poison), wide, {"mask": at.dense_array([0] * type.elements, I32)})
        op.replace_by((b.op1("llvm.icmp", (lanes, splat), type, {"predicate": at.integer_attr(2, I64)}),))

    def shuffle(self, op: Operation) -> None:
        mask = op.attributes["mask"]
        assert isinstance(mask, at.DenseArrayAttr)
        op.attributes["mask"] = at.dense_array(mask.values, I32)
        op.row = REGISTRY["llvm.shufflevector"]

    def from_elements(self, op: Operation) -> None:
        b = Builder.before(op)
        value = b.op1("llvm.mlir.poison", (), op.result.type)
        for i, element in enumerate(op.operands):
            value = b.op1("llvm.insertelement", (value, element, self._int(b, i, I64)), op.result.type)
        op.replace_by((value,))

    def lookup(self, op: Operation) -> None:
        """Lane by lane through scalar loads: measured, vpgatherdd takes twice as long.

        When the index lanes come straight from memory they are read as 64-bit words and split by shifts.
        """
        b = Builder.before(op)
        table, value = op.operands
        type = op.result.type
        element = self.type(element_type(type))
        if not isinstance(type, VectorType):
            index = b.op1("llvm.zext", (self._as_bits(b, value),), I64)
            op.replace_by((self._entry(b, table, index, element),))
            return
        result = b.op1("llvm.mlir.poison", (), type)
        for lane, index in enumerate(self._lane_bits(b, op, value, type.elements)):
            entry = self._entry(b, table, index, element)
            result = b.op1("llvm.insertelement", (result, entry, self._int(b, lane, I64)), type)
        op.replace_by((result,))

    def _entry(self, b: Builder, table: Value, index: Value, element: Type) -> Value:
        alignment = {"alignment": at.integer_attr(max(1, bit_width(element) // 8), I64)}
        return b.op1("llvm.load", (self.address(b, table, index, element),), element, alignment)

    def _as_bits(self, b: Builder, value: Value) -> Value:
        bits = with_element(value.type, integer(bit_width(element_type(value.type))))
        return value if value.type is bits else b.op1("llvm.bitcast", (value,), bits)

    def _lane_bits(self, b: Builder, op: Operation, value: Value, lanes: int) -> list[Value]:
        """The bits of each lane, as i64."""
        width = bit_width(element_type(value.type))
        per_word = 64 // width
        source = value.defining_op
        if source is None or source.name != "llvm.load" or lanes % per_word:
            bits = self._as_bits(b, value)
            element = element_type(bits.type)
            lanes_ = [b.op1("llvm.extractelement", (bits, self._int(b, i, I64)), element) for i in range(lanes)]
            return [b.op1("llvm.zext", (v,), I64) for v in lanes_]
        mask = self._int(b, (1 << width) - 1, I64)
        result: list[Value] = []
        for word in range(lanes // per_word):
            address = self.gep(b, source.operands[0], I64, (), (word,))
            loaded = b.op1("llvm.load", (address,), I64, {"alignment": at.integer_attr(max(1, width // 8), I64)})
            for part in range(per_word):
                shifted = b.op1("llvm.lshr", (loaded, self._int(b, part * width, I64)), I64) if part else loaded
                result.append(shifted if part == per_word - 1 else b.op1("llvm.and", (shifted, mask), I64))
        return result

    def get_global(self, op: Operation) -> None:
        op.attributes = {"global_name": op.attributes["name"]}
        op.row = REGISTRY["llvm.mlir.addressof"]

    def multiply_extended(self, op: Operation) -> None:
        """The two halves by one double-width multiplication."""
        b = Builder.before(op)
        extend = "llvm.sext" if op.name == "arith.mulsi_extended" else "llvm.zext"
        narrow = op.results[0].type
        width = bit_width(element_type(narrow))
        if width == 64 and isinstance(narrow, VectorType):
            op.replace_by(self._long_product(b, *op.operands, signed=op.name == "arith.mulsi_extended"))
            return
        wide = with_element(narrow, integer(2 * width))
        lhs, rhs = (b.op1(extend, (v,), wide) for v in op.operands)
        product = b.op1("llvm.mul", (lhs, rhs), wide)
        amount = b.op1(
            "llvm.mlir.constant",
            (),
            wide,
            {"value": at.splat_or_scalar(at.integer_attr(width, element_type(wide)), wide)},
        )
        low = b.op1("llvm.trunc", (product,), narrow)
        high = b.op1("llvm.trunc", (b.op1("llvm.lshr", (product, amount), wide),), narrow)
        op.replace_by((low, high))

    def _long_product(self, b: Builder, x: Value, y: Value, *, signed: bool) -> tuple[Value, Value]:
        """The halves of 64-bit lanes' products, by 32-bit digits: no lane has 128 bits."""
        type = x.type

        def number(value: int) -> Value:
            return b.op1(
                "llvm.mlir.constant", (), type, {"value": at.splat_or_scalar(at.integer_attr(value, I64), type)}
            )

        def op(name: str, p: Value, q: Value) -> Value:
            return b.op1(f"llvm.{name}", (p, q), type)

        digit, half = number((1 << 32) - 1), number(32)
        (x0, x1), (y0, y1) = ((op("and", v, digit), op("lshr", v, half)) for v in (x, y))
        middle = op("add", op("mul", x1, y0), op("lshr", op("mul", x0, y0), half))
        other = op("add", op("mul", x0, y1), op("and", middle, digit))
        carries = op("add", op("lshr", middle, half), op("lshr", other, half))
        high = op("add", op("mul", x1, y1), carries)
        if signed:  # a negative factor was taken as 2^64 more than it is
            last = number(63)
            for sign, factor in ((x, y), (y, x)):
                high = op("sub", high, op("and", op("ashr", sign, last), factor))
        return op("mul", x, y), high

    def absolute_int(self, op: Operation) -> None:
        b = Builder.before(op)
        value, type = op.operands[0], op.result.type
        zero = b.op1(
            "llvm.mlir.constant", (), type, {"value": at.splat_or_scalar(at.integer_attr(0, element_type(type)), type)}
        )
        negated = b.op1("llvm.sub", (zero, value), type)
        op.replace_by((b.op1("llvm.intr.smax", (value, negated), type),))

    def ceil_div(self, op: Operation) -> None:
        """(x + d - 1) / d would overflow near the top; x/d + (x mod d != 0) doesn't."""
        b = Builder.before(op)
        lhs, rhs = op.operands
        type = op.result.type
        quotient = b.op1("llvm.udiv", (lhs, rhs), type)
        remainder = b.op1("llvm.urem", (lhs, rhs), type)
        zero = b.op1(
            "llvm.mlir.constant", (), type, {"value": at.splat_or_scalar(at.integer_attr(0, element_type(type)), type)}
        )
        rest = b.op1(
            "llvm.icmp", (remainder, zero), with_element(type, integer(1)), {"predicate": at.integer_attr(1, I64)}
        )
        op.replace_by((b.op1("llvm.add", (quotient, b.op1("llvm.zext", (rest,), type)), type),))

    def call(self, op: Operation) -> None:
        types = [r.type for r in op.results]
        if len(types) <= 1:
            op.row = REGISTRY["llvm.call"]
            op.attributes = {"callee": op.attributes["callee"]}
            return
        b = Builder.before(op)
        packed = b.create("llvm.call", op.operands, (llvm_struct(types),), {"callee": op.attributes["callee"]}).result
        op.replace_by(
            [b.op1("llvm.extractvalue", (packed,), t, {"position": at.dense_array((i,))}) for i, t in enumerate(types)]
        )

    def ret(self, op: Operation) -> None:
        if len(op.operands) > 1:
            b = Builder.before(op)
            type = llvm_struct([v.type for v in op.operands])
            packed = b.op1("llvm.mlir.poison", (), type)
            for i, value in enumerate(op.operands):
                packed = b.op1("llvm.insertvalue", (packed, value), type, {"position": at.dense_array((i,))})
            op.set_operands((packed,))
        op.row = REGISTRY["llvm.return"]

    def branch(self, op: Operation) -> None:
        op.row = REGISTRY["llvm.br" if op.name == "cf.br" else "llvm.cond_br"]


def _target(entry: Operation) -> str:
    found = entry.attributes.get("warpsmith.target")
    return found.value if isinstance(found, at.StringAttr) else ""


def _where(op: Operation) -> str:
    return f" (from HLO instruction {', '.join(op.location.names)})" if op.location.names else ""


_TABLE: dict[str, Callable[[_Lowering, Operation], None]] = {
    "arith.constant": _Lowering.constant,
    "arith.index_cast": _Lowering.index_cast,
    "arith.index_castui": _Lowering.index_cast,
    "arith.bitcast": _Lowering.bitcast,
    "arith.mulsi_extended": _Lowering.multiply_extended,
    "arith.mului_extended": _Lowering.multiply_extended,
    "arith.ceildivui": _Lowering.ceil_div,
    "math.absi": _Lowering.absolute_int,
    "memref.load": _Lowering.load,
    "memref.store": _Lowering.store,
    "memref.get_global": _Lowering.get_global,
    "memref.atomic_rmw": _Lowering.atomic_rmw,
    "xla_gpu.compare_exchange": _Lowering.compare_exchange,
    "xla_cpu.lookup": _Lowering.lookup,
    "vector.load": _Lowering.load,
    "vector.store": _Lowering.store,
    "vector.maskedload": _Lowering.masked_load,
    "vector.maskedstore": _Lowering.masked_store,
    "vector.gather": _Lowering.gather,
    "vector.extract": _Lowering.vector_extract,
    "vector.insert": _Lowering.vector_insert,
    "vector.broadcast": _Lowering.broadcast,
    "vector.bitcast": _Lowering.bitcast,
    "vector.step": _Lowering.step,
    "vector.create_mask": _Lowering.create_mask,
    "vector.shuffle": _Lowering.shuffle,
    "vector.from_elements": _Lowering.from_elements,
    "gpu.thread_id": _Lowering.gpu_id,
    "gpu.block_id": _Lowering.gpu_id,
    "gpu.block_dim": _Lowering.gpu_id,
    "gpu.grid_dim": _Lowering.gpu_id,
    "gpu.barrier": _Lowering.barrier,
    "gpu.shuffle": _Lowering.warp_shuffle,
    "func.call": _Lowering.call,
    "func.return": _Lowering.ret,
    "cf.br": _Lowering.branch,
    "cf.cond_br": _Lowering.branch,
}
