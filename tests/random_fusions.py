"""Random fusions: HLO bodies of a few ops with sharing, layouts, and several outputs, drawn from a `random.Random`.

`random_fusion` gives the text of a module whose last computation is the body.  All indices of one parameter lie in a
range that the op clamps, and sums are short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from random import Random

__all__ = ["RandomFusion", "random_fusion"]

INTEGERS = ("s4", "u4", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64")
FLOATS = ("f16", "bf16", "f32", "f64")
DTYPES = (*INTEGERS, *FLOATS, *FLOATS[:3], "f32", "pred")
BITS = {"pred": 8, "bf16": 16, **{t: int(t[1:]) for t in (*INTEGERS, "f16", "f32", "f64")}}
WORDS = {
    4: ("s4", "u4"),
    8: ("s8", "u8"),
    16: ("s16", "u16", "f16", "bf16"),
    32: ("s32", "u32", "f32"),
    64: ("s64", "u64", "f64"),
}

INTEGER_UNARY = ("negate", "not", "popcnt", "count-leading-zeros")
SIGNED_UNARY = (*INTEGER_UNARY, "abs", "sign")
INTEGER_BINARY = (
    *("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or", "xor"),
    *("shift-left", "shift-right-logical", "shift-right-arithmetic"),
)
EXACT_UNARY = ("abs", "ceil", "floor", "negate", "round-nearest-afz", "round-nearest-even", "sign", "sqrt")
EXACT_BINARY = ("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum")
FUNCTIONS = ("exponential", "tanh", "logistic", "log", "rsqrt", "sine", "erf", "cbrt", "exponential-minus-one")
PRED_BINARY = ("and", "or", "xor", "maximum", "minimum")
DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")

MOST_ELEMENTS = 6000
MOST_TERMS = 40

REDUCERS = "\n".join(
    f"{op}_{t} {{ a = {t}[] parameter(0)  b = {t}[] parameter(1)  ROOT r = {t}[] {op}(a, b) }}"
    for t in (*INTEGERS, *FLOATS)
    for op in ("add", "maximum", "minimum", "multiply")
)


@dataclass(frozen=True)
class Array:
    """A value of the body."""

    name: str
    dtype: str
    dims: tuple[int, ...]
    layout: tuple[int, ...] | None = None

    @property
    def elements(self) -> int:
        return prod(self.dims)

    def __str__(self) -> str:
        order = "" if self.layout is None else "{" + ",".join(map(str, self.layout)) + "}"
        return f"{self.dtype}[{','.join(map(str, self.dims))}]{order}"


@dataclass
class RandomFusion:
    """The text, which parameters hold indices (number to extent), and whether it adds up floats."""

    text: str = ""
    indices: dict[int, int] = field(default_factory=dict[int, int])
    has_sums: bool = False


def random_fusion(rng: Random, most_ops: int = 10, most_elements: int = MOST_ELEMENTS) -> RandomFusion:
    """A fusion of up to `most_ops` ops besides parameters and constants; arrays have up to `most_elements` elements."""
    return _Body(rng, most_elements).build(most_ops)


class _Body:
    """The body under construction."""

    def __init__(self, rng: Random, most_elements: int) -> None:
        self.rng = rng
        self.most_elements = most_elements
        self.lines: list[str] = []
        self.values: list[Array] = []
        self.used: set[str] = set()
        self.parameters = 0
        self.found = RandomFusion()

    # -- pieces
    def add(self, dtype: str, dims: Sequence[int], op: str, operands: Sequence[Array], attributes: str = "") -> Array:
        value = Array(f"v{len(self.lines)}", dtype, tuple(dims), self.layout(len(dims)) if op == "copy" else None)
        self.used.update(each.name for each in operands)
        names = ", ".join(each.name for each in operands)
        self.lines.append(f"{value.name} = {value} {op}({names}){', ' + attributes if attributes else ''}")
        self.values.append(value)
        return value

    def layout(self, rank: int) -> tuple[int, ...] | None:
        if rank < 2 or self.rng.random() < 0.6:
            return None
        return tuple(self.rng.sample(range(rank), rank))

    def parameter(self, dtype: str, dims: Sequence[int], extent: int | None = None) -> Array:
        value = Array(f"v{len(self.lines)}", dtype, tuple(dims), self.layout(len(dims)))
        self.lines.append(f"{value.name} = {value} parameter({self.parameters})")
        if extent is None:
            self.values.append(value)
        else:
            self.found.indices[self.parameters] = extent
        self.parameters += 1
        return value

    def constant(self, dtype: str, dims: Sequence[int] = ()) -> Array:
        value = Array(f"v{len(self.lines)}", dtype, tuple(dims))
        flat = [self.number(dtype) for _ in range(value.elements)]
        for size in reversed(dims):
            flat = ["{" + ",".join(flat[i : i + size]) + "}" for i in range(0, len(flat), size)]
        self.lines.append(f"{value.name} = {value} constant({flat[0]})")
        return value

    def number(self, dtype: str) -> str:
        if dtype == "pred":
            return self.rng.choice(["true", "false"])
        if dtype in FLOATS:
            return self.rng.choice(["0", "1", "-1", "0.5", "-2.25", "100", "inf", "-inf", "nan", "-0", "3.0e-5"])
        low, high = (
            (0, 2 ** BITS[dtype] - 1) if dtype[0] == "u" else (-(2 ** (BITS[dtype] - 1)), 2 ** (BITS[dtype] - 1) - 1)
        )
        return str(self.rng.choice([low, high, 0, 1, 2, min(high, 7), max(low, -1), self.rng.randint(low, high)]))

    def dims(self) -> tuple[int, ...]:
        rank = self.rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4])
        most = {0: 1, 1: 300, 2: 40, 3: 14, 4: 7}[rank]
        if self.most_elements > MOST_ELEMENTS and rank:
            most = int(self.most_elements ** (1 / rank))
        sizes = [1, 2, 3, most]
        return tuple(
            self.rng.choice([*sizes, self.rng.randint(1, most), self.rng.randint(1, most)]) for _ in range(rank)
        )

    def pick(self, accept: Callable[[Array], bool] = lambda _: True) -> Array | None:
        """A value that is accepted, later ones more likely."""
        good = [each for each in self.values if accept(each)]
        return self.rng.choice(good[-self.rng.randint(1, len(good)) :]) if good else None

    def like(self, value: Array, dtype: str | None = None) -> Array:
        """A value of the same dims (and dtype): one that is there, a broadcast scalar, or a new parameter."""
        dtype = dtype or value.dtype
        other = self.pick(lambda each: each.dims == value.dims and each.dtype == dtype)
        choice = self.rng.random()
        if other is not None and choice < 0.6:
            return other
        if choice < 0.8:
            scalar = self.constant(dtype)
            return self.add(dtype, value.dims, "broadcast", [scalar], "dimensions={}") if value.dims else scalar
        return self.parameter(dtype, value.dims)

    # -- ops
    def build(self, most_ops: int) -> RandomFusion:
        rng = self.rng
        for _ in range(rng.randint(1, 3)):
            self.parameter(rng.choice(DTYPES), self.dims())
        for _ in range(rng.randint(1, most_ops)):
            rng.choice(_OPS)(self)
        computed = [v for v in self.values if "parameter(" not in self.lines[int(v.name[1:])]] or self.values
        last = [computed[-1]]
        unused = [v for v in computed if v.name not in self.used and v is not last[0]]
        rng.shuffle(unused)
        roots = [*last, *unused[: rng.choice([0, 1, 1, 2, 3])]]
        if len(roots) == 1:
            root = roots[0]
            position = int(root.name[1:])
            if position == len(self.lines) - 1:
                self.lines[position] = "ROOT " + self.lines[position]
            else:
                self.lines.append(f"ROOT r = {root} copy({root.name})")
        else:
            types = ", ".join(map(str, roots))
            self.lines.append(f"ROOT r = ({types}) tuple({', '.join(each.name for each in roots)})")
        body = "\n".join("  " + line for line in self.lines)
        self.found.text = f"HloModule m\n{REDUCERS}\nfused {{\n{body}\n}}"
        return self.found

    def unary(self) -> None:
        x = self.pick()
        assert x is not None
        if x.dtype == "pred":
            op = "not"
        elif x.dtype in INTEGERS:
            op = self.rng.choice(SIGNED_UNARY if x.dtype[0] == "s" else INTEGER_UNARY)
        else:
            op = self.rng.choice(EXACT_UNARY + FUNCTIONS)
        self.add(x.dtype, x.dims, op, [x])

    def binary(self) -> None:
        x = self.pick()
        assert x is not None
        names = PRED_BINARY if x.dtype == "pred" else INTEGER_BINARY if x.dtype in INTEGERS else EXACT_BINARY
        y = self.like(x)
        self.add(x.dtype, x.dims, self.rng.choice(names), [x, y] if self.rng.random() < 0.7 else [y, x])

    def compare(self) -> None:
        x = self.pick()
        assert x is not None
        self.add("pred", x.dims, "compare", [x, self.like(x)], f"direction={self.rng.choice(DIRECTIONS)}")

    def select(self) -> None:
        x = self.pick()
        assert x is not None
        self.add(x.dtype, x.dims, "select", [self.like(x, "pred"), x, self.like(x)])

    def clamp(self) -> None:
        x = self.pick(lambda each: each.dtype != "pred")
        if x is not None:
            self.add(x.dtype, x.dims, "clamp", [self.like(x), x, self.like(x)])

    def convert(self) -> None:
        x = self.pick()
        assert x is not None
        self.add(self.rng.choice([t for t in DTYPES if t != x.dtype]), x.dims, "convert", [x])

    def bits(self) -> None:
        x = self.pick(lambda each: each.dtype in INTEGERS)  # bits of a NaN are open
        if x is not None:
            targets = [t for t in WORDS[BITS[x.dtype]] if t != x.dtype]
            if targets:
                self.add(self.rng.choice(targets), x.dims, "bitcast-convert", [x])

    def broadcast(self) -> None:
        x = self.pick(lambda each: len(each.dims) < 4)
        if x is None:
            return
        extra = self.rng.randint(1, 4 - len(x.dims))
        rank = len(x.dims) + extra
        kept = sorted(self.rng.sample(range(rank), len(x.dims)))
        dims = [self.rng.choice([1, 2, 3, 5, 16]) for _ in range(rank)]
        for at, size in zip(kept, x.dims, strict=True):
            dims[at] = size
        if prod(dims) <= self.most_elements:
            self.add(x.dtype, dims, "broadcast", [x], f"dimensions={{{','.join(map(str, kept))}}}")

    def transpose(self) -> None:
        x = self.pick(lambda each: len(each.dims) > 1)
        if x is not None:
            order = self.rng.sample(range(len(x.dims)), len(x.dims))
            self.add(
                x.dtype, [x.dims[d] for d in order], "transpose", [x], f"dimensions={{{','.join(map(str, order))}}}"
            )

    def reshape(self) -> None:
        x = self.pick()
        assert x is not None
        left, dims = x.elements, list[int]()
        while left > 1 and len(dims) < 3:
            divisors = [d for d in range(1, min(left, 64) + 1) if left % d == 0]
            dims.append(self.rng.choice(divisors))
            left //= dims[-1]
        dims.insert(self.rng.randint(0, len(dims)), left)
        self.add(x.dtype, dims, "reshape", [x])

    def copy(self) -> None:
        x = self.pick()
        assert x is not None
        self.add(x.dtype, x.dims, "copy", [x])

    def slice(self) -> None:
        x = self.pick(lambda each: len(each.dims) > 0)
        if x is None:
            return
        parts, dims = list[str](), list[int]()
        for size in x.dims:
            start = self.rng.randint(0, size - 1)
            limit, stride = self.rng.randint(start + 1, size), self.rng.choice([1, 1, 2, 3])
            if self.rng.random() < 0.4:
                start, limit, stride = 0, size, 1
            parts.append(f"[{start}:{limit}:{stride}]")
            dims.append(-(-(limit - start) // stride))
        self.add(x.dtype, dims, "slice", [x], f"slice={{{','.join(parts)}}}")

    def reverse(self) -> None:
        x = self.pick(lambda each: len(each.dims) > 0)
        if x is not None:
            axes = self.rng.sample(range(len(x.dims)), self.rng.randint(1, len(x.dims)))
            self.add(x.dtype, x.dims, "reverse", [x], f"dimensions={{{','.join(map(str, axes))}}}")

    def pad(self) -> None:
        x = self.pick(lambda each: len(each.dims) > 0)
        if x is None:
            return
        parts, dims = list[str](), list[int]()
        for size in x.dims:
            low, high, inner = (
                self.rng.choice([0, 0, 1, 3, -1]),
                self.rng.choice([0, 0, 2, 5, -1]),
                self.rng.choice([0, 0, 0, 1]),
            )
            padded = size + (size - 1) * inner + low + high
            if padded < 1:
                low, high, inner, padded = 0, 0, 0, size
            parts.append(f"{low}_{high}_{inner}")
            dims.append(padded)
        if prod(dims) <= self.most_elements:
            self.add(x.dtype, dims, "pad", [x, self.constant(x.dtype)], f"padding={'x'.join(parts)}")

    def concatenate(self) -> None:
        x = self.pick(lambda each: len(each.dims) > 0)
        if x is None:
            return
        axis = self.rng.randrange(len(x.dims))
        operands = [x]
        for _ in range(self.rng.randint(1, 3)):
            other = self.pick(
                lambda each: (
                    each.dtype == x.dtype
                    and len(each.dims) == len(x.dims)
                    and all(a == b for d, (a, b) in enumerate(zip(each.dims, x.dims, strict=True)) if d != axis)
                )
            )
            operands.append(other or x)
        self.rng.shuffle(operands)
        dims = list(x.dims)
        dims[axis] = sum(each.dims[axis] for each in operands)
        if prod(dims) <= self.most_elements:
            self.add(x.dtype, dims, "concatenate", operands, f"dimensions={{{axis}}}")

    def iota(self) -> None:
        dims = self.dims() or (5,)
        dtype = self.rng.choice([t for t in DTYPES if t != "pred"])
        self.add(dtype, dims, "iota", [], f"iota_dimension={self.rng.randrange(len(dims))}")

    def table(self) -> None:
        dims = tuple(self.rng.randint(1, 4) for _ in range(self.rng.randint(1, 2)))
        value = self.constant(self.rng.choice(DTYPES), dims)
        self.values.append(value)

    def reduce(self) -> None:
        x = self.pick(lambda each: len(each.dims) > 0 and each.dtype != "pred")
        if x is None:
            return
        axes = sorted(self.rng.sample(range(len(x.dims)), self.rng.randint(1, len(x.dims))))
        if prod(x.dims[d] for d in axes) > MOST_TERMS:
            return
        op = self.rng.choice(
            ["add", "maximum", "minimum"] if x.dtype in FLOATS else ["add", "maximum", "minimum", "multiply"]
        )
        self.found.has_sums |= x.dtype in FLOATS
        start = self.constant(x.dtype)
        if x.dtype in FLOATS:
            self.lines[-1] = f"{start.name} = {start} constant({self.rng.choice(['0', '1', '-2'])})"
        dims = [size for d, size in enumerate(x.dims) if d not in axes]
        attributes = f"dimensions={{{','.join(map(str, axes))}}}, to_apply={op}_{x.dtype}"
        self.add(x.dtype, dims, "reduce", [x, start], attributes)

    def reduce_window(self) -> None:
        x = self.pick(lambda each: 0 < len(each.dims) < 3 and each.dtype != "pred")
        if x is None:
            return
        sizes, strides, pads, dims = list[int](), list[int](), list[str](), list[int]()
        for size in x.dims:
            window, stride = self.rng.randint(1, min(3, size)), self.rng.choice([1, 1, 2])
            low, high = self.rng.choice([0, 0, 1]), self.rng.choice([0, 0, 2])
            sizes.append(window)
            strides.append(stride)
            pads.append(f"{low}_{high}")
            dims.append((size + low + high - window) // stride + 1)
        self.found.has_sums |= x.dtype in FLOATS
        start = self.constant(x.dtype)
        if x.dtype in FLOATS:
            self.lines[-1] = f"{start.name} = {start} constant(0)"
        window = f"size={'x'.join(map(str, sizes))} stride={'x'.join(map(str, strides))} pad={'x'.join(pads)}"
        op = self.rng.choice(["add", "maximum"])
        self.add(x.dtype, dims, "reduce-window", [x, start], f"window={{{window}}}, to_apply={op}_{x.dtype}")

    def dot(self) -> None:
        x = self.pick(lambda each: len(each.dims) == 2 and each.dims[1] <= MOST_TERMS and each.dtype != "pred")
        if x is None:
            return
        y = self.parameter(x.dtype, (x.dims[1], self.rng.randint(1, 9)))
        self.found.has_sums |= x.dtype in FLOATS
        dims = (x.dims[0], y.dims[1])
        self.add(x.dtype, dims, "dot", [x, y], "lhs_contracting_dims={1}, rhs_contracting_dims={0}")

    def starts(self, x: Array) -> list[Array]:
        dtype = self.rng.choice(["s32", "s32", "u32", "s64", "u8", "s8", "u64"])
        return [self.parameter(dtype, (), size) for size in x.dims]

    def dynamic_slice(self) -> None:
        x = self.pick(lambda each: len(each.dims) > 0)
        if x is not None:
            dims = [self.rng.choice([size, self.rng.randint(1, size)]) for size in x.dims]
            attributes = f"dynamic_slice_sizes={{{','.join(map(str, dims))}}}"
            self.add(x.dtype, dims, "dynamic-slice", [x, *self.starts(x)], attributes)

    def dynamic_update_slice(self) -> None:
        x = self.pick(lambda each: len(each.dims) > 0)
        if x is not None:
            dims = [self.rng.choice([size, self.rng.randint(1, size)]) for size in x.dims]
            update = self.parameter(x.dtype, dims)
            self.add(x.dtype, x.dims, "dynamic-update-slice", [x, update, *self.starts(x)])

    def gather(self) -> None:
        x = self.pick(lambda each: 0 < len(each.dims) < 3)
        if x is None:
            return
        index = self.parameter(self.rng.choice(["s32", "u8", "s64"]), (self.rng.randint(1, 9),), x.dims[0])
        sizes = [1, *x.dims[1:]]
        offsets = ",".join(str(d) for d in range(1, len(x.dims)))
        attributes = f"offset_dims={{{offsets}}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1"
        attributes += f", slice_sizes={{{','.join(map(str, sizes))}}}"
        self.add(x.dtype, (*index.dims, *x.dims[1:]), "gather", [x, index], attributes)


_OPS: tuple[Callable[[_Body], None], ...] = (
    *[_Body.unary, _Body.binary, _Body.binary, _Body.convert, _Body.select, _Body.compare, _Body.clamp] * 2,
    *(_Body.broadcast, _Body.transpose, _Body.reshape, _Body.slice, _Body.pad, _Body.concatenate, _Body.reverse),
    *(_Body.copy, _Body.iota, _Body.table, _Body.bits, _Body.reduce, _Body.reduce_window, _Body.dot, _Body.gather),
    *(_Body.dynamic_slice, _Body.dynamic_update_slice, _Body.unary),
)
