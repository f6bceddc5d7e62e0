"""Whatever the builder makes, printing and reading gives it back, in both forms; and the text is stable."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.equality import structurally_equal

from warpsmith.indexing import INT64_MAX, INT64_MIN, IndexingMap, add, const, dim, mod, mul, symbol, variables
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core import llvm_types as lt
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Block, Location, Operation, Region, Value
from warpsmith.ir.core.verifier import verify
from warpsmith.ir.dialects import arith, func, gpu, math, memory, scf
from warpsmith.ir.dialects import vector as vectors
from warpsmith.ir.text.attribute_text import attribute_text
from warpsmith.ir.text.parser import parse_module, parse_modules
from warpsmith.ir.text.printer import location_text, print_module, print_op

FAST = settings(deadline=None, max_examples=60)

_FLOATS = ["bf16", "f16", "f32", "f64", "f8E4M3FN", "f8E5M2", "f8E8M0FNU"]
_SCALARS = st.one_of(
    st.sampled_from([ty.integer(w) for w in (1, 4, 8, 16, 32, 64)]),
    st.sampled_from([ty.float_type(n) for n in _FLOATS]),
)
_HINTS = st.one_of(
    st.just(""),
    st.sampled_from(["x", "x_0", "cst", "arg0", "0", "5a", "a b", "é", "c-1", "$", "x#1", "loop"]),
    st.text(max_size=6),
)


@st.composite
def scalar_attributes(draw: st.DrawFn) -> at.Attribute:
    type = draw(_SCALARS)
    bits = draw(st.integers(0, (1 << type.width) - 1))
    return at.float_bits(bits, type) if isinstance(type, ty.FloatType) else at.integer_attr(bits, type)


@st.composite
def dense_attributes(draw: st.DrawFn) -> at.Attribute:
    element = draw(st.one_of(_SCALARS, st.sampled_from([ty.complex_of(ty.F32), ty.complex_of(ty.F64)])))
    shape = draw(st.lists(st.integers(0, 5), max_size=3))
    if draw(st.booleans()):
        shape = [*shape, draw(st.sampled_from([1, 70]))]
    type = ty.tensor(shape, element)
    dtype = ty.numpy_dtype(type)
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    if isinstance(element, ty.ComplexType):
        values = random.normal(size=shape) + 1j * random.normal(size=shape)
    elif isinstance(element, ty.FloatType):
        raw = random.integers(0, 1 << element.width, size=shape, dtype=np.uint64)
        values = raw.astype(f"u{dtype.itemsize}").view(dtype)
    else:
        values = random.integers(0, 2, size=shape) if element is ty.I1 else random.integers(-8, 8, size=shape)
    return at.dense(np.asarray(values).astype(dtype), type)


@st.composite
def maps(draw: st.DrawFn) -> at.Attribute:
    names = draw(st.lists(st.sampled_from(["th_x", "bl_x", "v", "i", "j", "k"]), unique=True, max_size=4))
    dims = draw(st.integers(0, len(names)))
    sizes = [draw(st.integers(1, 50)) for _ in names]
    terms = [dim(i) for i in range(dims)] + [symbol(i) for i in range(len(names) - dims)]
    total = const(draw(st.integers(-5, 5)))
    for term in terms:
        total = add(total, mul(term, const(draw(st.integers(-3, 7)))))
    results = [total, mod(total, const(draw(st.integers(1, 9))))][: draw(st.integers(1, 2))]
    return at.indexing_map(
        IndexingMap.make(
            variables(sizes[:dims], names[:dims]), results, range_vars=variables(sizes[dims:], names[dims:])
        )
    )


ATTRIBUTES = st.recursive(
    st.one_of(
        scalar_attributes(),
        dense_attributes(),
        maps(),
        st.just(at.UNIT),
        st.integers(INT64_MIN, INT64_MAX).map(at.integer_attr),
        st.text(max_size=12).map(at.string),
        st.text(min_size=1, max_size=8).map(at.symbol),
        st.lists(st.integers(-9, 9), max_size=4).map(at.dense_array),
        st.lists(st.booleans(), max_size=4).map(lambda v: at.dense_array([int(b) for b in v], ty.I1)),
        st.sampled_from([ty.F32, ty.tensor((2, 3), ty.BF16, (0, 1)), ty.memref((4,), ty.I8, 3), ty.pointer(1)]).map(
            at.type_attr
        ),
        st.sampled_from(
            ["#gpu<dim x>", "#arith.fastmath<contract>", "affine_map<(d0, d1) -> (d0)>", '#a.b<"x>" -> <y>>']
        ).map(at.opaque),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(at.array),
        st.dictionaries(st.text(min_size=1, max_size=5), inner, max_size=3).map(at.dictionary),
    ),
    max_leaves=6,
)


def back(module: Operation) -> None:
    """The module comes back equal from both forms, and prints to the same text again."""
    for generic in (False, True):
        printed = print_module(module, generic=generic)
        again = parse_module(printed)
        assert structurally_equal(module, again), printed
        assert print_module(again, generic=generic) == printed


@pytest.mark.slow
@FAST
@given(st.dictionaries(st.text(min_size=1, max_size=6), ATTRIBUTES, max_size=3))
def test_attributes_come_back(attributes: dict[str, at.Attribute]) -> None:
    module = func.module()
    Builder.at_end(module.body).create("gpu.barrier", attributes=attributes)
    back(module)


@FAST
@given(scalar_attributes())
def test_scalar_constants_come_back_bit_for_bit(attribute: at.Attribute) -> None:
    module = func.module()
    assert isinstance(attribute, (at.IntegerAttr, at.FloatAttr))
    Builder.at_end(module.body).create("arith.constant", (), (attribute.type,), {"value": attribute})
    again = parse_module(print_module(module))
    assert again.body.first is not None
    assert again.body.first.attributes["value"] is attribute


_TYPES = st.recursive(
    st.one_of(_SCALARS, st.just(ty.INDEX), st.sampled_from([ty.complex_of(ty.F64), ty.pointer(), ty.pointer(3)])),
    lambda inner: st.one_of(
        st.builds(ty.vector, st.lists(st.integers(1, 9), min_size=1, max_size=2), _SCALARS),
        st.builds(ty.memref, st.lists(st.integers(0, 9), max_size=3), _SCALARS, st.sampled_from([0, 1, 3, 5])),
        st.builds(lt.llvm_array, st.integers(0, 9), inner),
        st.lists(inner, max_size=3).map(lt.llvm_struct),
        st.builds(lt.llvm_function, st.one_of(st.just(lt.VOID), inner), st.lists(inner, max_size=2)),
    ),
    max_leaves=4,
)
_TENSORS = st.lists(st.integers(0, 20), max_size=4).flatmap(
    lambda shape: st.permutations(range(len(shape))).map(lambda layout: ty.tensor(shape, ty.F32, layout))
)


@FAST
@given(st.lists(st.one_of(_TYPES, _TENSORS), max_size=3), st.lists(st.one_of(_TYPES, _TENSORS), max_size=2))
def test_types_come_back(inputs: list[ty.Type], results: list[ty.Type]) -> None:
    module = func.module()
    signature = at.type_attr(ty.function(inputs, results))
    attributes: dict[str, at.Attribute] = {"sym_name": at.string("f"), "function_type": signature}
    Builder.at_end(module.body).create("func.func", (), (), attributes, (Region(),))
    back(module)


class Maker:
    """Grows a random function from a list of choices."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.depth = 0

    def pick(self, values: list[Value], type: ty.Type, b: Builder) -> Value:
        fitting = [v for v in values if v.type is type]
        if fitting and self.draw(st.booleans()):
            return self.draw(st.sampled_from(fitting))
        return arith.constant(b, self.draw(st.integers(0, 3)), type, self.draw(_HINTS))

    def step(self, b: Builder, values: list[Value]) -> None:
        kinds: list[Callable[[Builder, list[Value]], None]] = [self.float_op, self.compare, self.access, self.vector_op]
        if self.depth < 3:
            kinds += [self.loop, self.branch, self.xla_loop]
        before = len(values)
        self.draw(st.sampled_from(kinds))(b, values)
        for value in values[before:]:
            if self.draw(st.booleans()):
                value.name = self.draw(_HINTS)

    def float_op(self, b: Builder, values: list[Value]) -> None:
        x, y = self.pick(values, ty.F32, b), self.pick(values, ty.F32, b)
        values.append(self.draw(st.sampled_from([arith.binary(b, "addf", x, y), math.unary(b, "exp", x)])))

    def compare(self, b: Builder, values: list[Value]) -> None:
        x, y = self.pick(values, ty.F32, b), self.pick(values, ty.F32, b)
        c = arith.cmpf(b, self.draw(st.sampled_from(sorted(arith.CMPF))), x, y)
        values += [c, arith.select(b, c, x, y)]

    def access(self, b: Builder, values: list[Value]) -> None:
        tensor = self.pick_tensor(values)
        values.append(memory.extract(b, tensor, [self.pick(values, ty.INDEX, b)]))

    def pick_tensor(self, values: list[Value]) -> Value:
        return self.draw(st.sampled_from([v for v in values if isinstance(v.type, ty.TensorType)]))

    def vector_op(self, b: Builder, values: list[Value]) -> None:
        v = vectors.broadcast(b, self.pick(values, ty.F32, b), 4)
        where = self.draw(st.sampled_from([0, 3, self.pick(values, ty.INDEX, b)]))
        values += [v, vectors.extract(b, v, where), vectors.insert(b, self.pick(values, ty.F32, b), v, where)]

    def inside(self, block: Block, values: list[Value]) -> tuple[Builder, list[Value]]:
        self.depth += 1
        b = Builder.at_end(block)
        inner = [*values, *block.args]
        for _ in range(self.draw(st.integers(0, 3))):
            self.step(b, inner)
        self.depth -= 1
        return b, inner

    def loop(self, b: Builder, values: list[Value]) -> None:
        bounds = [self.pick(values, ty.INDEX, b) for _ in range(3)]
        inits = [self.pick(values, ty.F32, b) for _ in range(self.draw(st.integers(0, 2)))]
        op = scf.for_(b, *bounds, inits, iv_name=self.draw(_HINTS), iter_names=[self.draw(_HINTS) for _ in inits])
        inner, known = self.inside(op.body, values)
        scf.yield_(inner, [self.pick(known, ty.F32, inner) for _ in inits])
        values += op.results

    def branch(self, b: Builder, values: list[Value]) -> None:
        results = [ty.F32] * self.draw(st.integers(0, 2))
        op = scf.if_(b, self.pick(values, ty.I1, b), results, with_else=True if results else self.draw(st.booleans()))
        for region in op.regions:
            for block in region.blocks:
                inner, known = self.inside(block, values)
                scf.yield_(inner, [self.pick(known, ty.F32, inner) for _ in results])
        values += op.results

    def xla_loop(self, b: Builder, values: list[Value]) -> None:
        attribute = self.draw(maps())
        assert isinstance(attribute, at.IndexingMapAttr)
        map = attribute.map
        dims = [self.pick(values, ty.INDEX, b) for _ in map.dim_vars]
        tensor = self.pick_tensor(values)
        op = gpu.loop(b, dims, map, [tensor])
        inner, known = self.inside(op.body, values)
        inserted = memory.insert(
            inner, self.pick(known, ty.F32, inner), op.body.args[-1], [self.pick(known, ty.INDEX, inner)]
        )
        gpu.yield_(inner, [inserted])


@st.composite
def modules(draw: st.DrawFn) -> Operation:
    module = func.module()
    maker = Maker(draw)
    inputs = [ty.tensor((8,), ty.F32), ty.F32, ty.INDEX]
    for i in range(draw(st.integers(1, 2))):
        attributes = [{"xla.slice_index": at.integer_attr(i)}, {}, {}] if draw(st.booleans()) else []
        names = [draw(_HINTS) for _ in inputs]
        op = func.build(
            Builder.at_end(module.body), f"f{i}", inputs, [ty.F32], arg_names=names, arg_attributes=attributes
        )
        b = Builder.at_end(op.body)
        values: list[Value] = list(op.body.args)
        for _ in range(draw(st.integers(0, 8))):
            maker.step(b, values)
        func.ret(b, [maker.pick(values, ty.F32, b)])
    return module


@pytest.mark.slow
@settings(deadline=None, max_examples=80)
@given(modules())
def test_random_modules_come_back(module: Operation) -> None:
    back(module)


def test_control_flow_with_uses_before_definitions_in_the_text() -> None:
    text = """
    func.func @f(%n: i32) -> i32 {
      cf.br ^bb2
    ^bb1:
      cf.br ^bb3(%later, %n : i32, i32)
    ^bb2:
      %later = arith.addi %n, %n : i32
      cf.br ^bb1
    ^bb3(%a: i32, %b: i32):
      return %a : i32
    }"""
    module = parse_module(text)
    verify(module)
    back(module)


def test_two_maps_that_differ_in_names_alone_keep_their_names() -> None:
    names = [["d0"], ["th_x"]]
    texts = [attribute_text(at.indexing_map(IndexingMap.make(variables([4], n), [dim(0)]))) for n in names]
    assert texts == [
        '#xla_gpu.indexing_map<"(d0) -> (d0), domain: d0 in [0, 3]">',
        '#xla_gpu.indexing_map<"(th_x) -> (th_x), domain: th_x in [0, 3]">',
    ]


def test_map_without_points_keeps_its_variables() -> None:
    empty = IndexingMap.from_sizes([dim(0), symbol(0)], [4], [3]).emptied()
    module = func.module()
    Builder.at_end(module.body).create("gpu.barrier", attributes={"map": at.indexing_map(empty)})
    back(module)


@pytest.mark.parametrize(
    ("names", "printed"),
    [
        (["x", "x", "x"], ["%x", "%x_0", "%x_1"]),
        (["x", "x_0", "x"], ["%x", "%x_0", "%x_1"]),
        (["", "5", "a b"], ["%0", "%_5", "%a_b"]),
    ],
)
def test_names_are_made_unique_and_readable(names: list[str], printed: list[str]) -> None:
    module = func.module()
    op = func.build(Builder.at_end(module.body), "f", [], [])
    b = Builder.at_end(op.body)
    for name in names:
        b.create("llvm.mlir.zero", (), (ty.I32,), hint=name)
    func.ret(b, [])
    lines = print_module(module).splitlines()[2:-3]
    assert [line.split()[0] for line in lines] == printed


def test_constants_are_named_after_their_values() -> None:
    module = func.module()
    b = Builder.at_end(module.body)
    for value in (at.integer_attr(7), at.integer_attr(-1, ty.I32), at.boolean(True), at.float_attr(2.0, ty.F32)):
        b.create("arith.constant", (), (value.type,), {"value": value})
    printed = [line.split()[0] for line in print_module(module).splitlines()[1:-1]]
    assert printed == ["%c7", "%c-1_i32", "%true", "%cst"]


@pytest.mark.parametrize(
    "location",
    [
        Location(("add.1",), "a.hlo", 3, 7),
        Location(("add.1", 'b"\\'), "", 0, 0),
        Location((), "x.py", 1, 2),
        Location(("a", "b", "c"), "dir/a.hlo", 12, 1),
    ],
)
def test_locations_come_back(location: Location) -> None:
    module = func.module()
    Builder.at_end(module.body, location).create("gpu.barrier")
    printed = print_module(module, locations=True)
    assert location_text(location) in printed
    again = parse_module(printed).body.first
    assert again is not None
    assert again.location == location


def test_locations_of_other_tools_are_read() -> None:
    module = parse_module(
        'gpu.barrier loc(#loc1)\ngpu.barrier loc(callsite("a"("f":1:2) at "b"))\n'
        '#loc = loc("f.py":3:4 to :9)\n#loc1 = loc(fused<"m">[#loc, "x"])\ngpu.barrier loc(unknown)'
    )
    assert [op.location for op in module.body] == [
        Location(("x",), "f.py", 3, 4),
        Location(("a", "b"), "f", 1, 2),
        Location(),
    ]


def test_parts_of_a_file_are_read_apart_with_their_lines() -> None:
    first, second = parse_modules("gpu.barrier\n// -----\n\ngpu.barrier\n", "two.mlir")
    assert first.body.first is not None
    assert second.body.first is not None
    assert (first.body.first.location.line, second.body.first.location.line) == (1, 4)


def test_an_op_alone_prints_on_one_line() -> None:
    module = parse_module("""
    #map = #xla_gpu.indexing_map<"(d0) -> (d0 + 1), domain: d0 in [0, 3]">
    func.func @f(%i: index) {
      %j = xla_gpu.apply_indexing #map(%i)
      return
    }""")
    (op,) = (op for op in module.walk() if op.name == "xla_gpu.apply_indexing")
    assert (
        print_op(op)
        == '%j = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 + 1), domain: d0 in [0, 3]">(%i)'
    )


@pytest.mark.parametrize("text", ["", "// nothing", "gpu.barrier // the end", "gpu.barrier\n\n// a\n// b\n", " \n"])
def test_comments_and_blanks_may_end_a_text(text: str) -> None:
    assert [op.name for op in parse_module(text).body] == ["gpu.barrier"] * text.count("gpu.barrier")


def test_unregistered_ops_come_back_when_they_are_let_in() -> None:
    text = """module {
  %0:2 = "other.op"() ({
  ^bb0(%a: i32):
    "other.end"(%a)[^bb1] : (i32) -> ()
  ^bb1:
    "other.end"() : () -> ()
  }, {
  }) {k = 1 : i64} : () -> (i32, f32)
}
"""
    assert print_module(parse_module(text, allow_unregistered=True)) == text


def test_ops_whose_pretty_form_would_lose_something_print_in_generic_form() -> None:
    text = """
    func.func @f(%x: f32, %t: tensor<4xf32>, %i: index) {
      %0 = "tensor.extract"(%t, %i) : (tensor<4xf32>, index) -> f64
      return
    }"""
    module = parse_module(text)
    assert '"tensor.extract"(%t, %i) : (tensor<4xf32>, index) -> f64' in print_module(module)
    back(module)


def long_chain(count: int) -> Operation:
    module = func.module()
    op = func.build(Builder.at_end(module.body), "f", [ty.F32], [ty.F32])
    b = Builder.at_end(op.body)
    x: Value = op.body.args[0]
    for i in range(count // 2):
        x = arith.binary(b, "mulf", x, arith.constant(b, float(i), ty.F32))
    func.ret(b, [x])
    return module


@pytest.mark.slow
def test_long_chains_and_many_equal_names_are_no_trouble() -> None:
    module = long_chain(10_000)
    verify(module)
    back(module)


def test_deep_nesting_within_reason_comes_back() -> None:
    text = "func.func @f(%c: i1) {\n" + "scf.if %c {\n" * 60 + "gpu.barrier\n" + "}\n" * 60 + "return\n}"
    module = parse_module(text)
    verify(module)
    back(module)
