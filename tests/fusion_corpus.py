"""Fusions, written by hand, that together use every op the elemental emitter takes: what the differential tests run.

Each `Case` is an HLO module whose entry is one fusion.  `profile` says which inputs mean something (sums need tame
ones); `large` cases are big enough for unrolled, vectorised GPU code on the device `device`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warpsmith.arrays import Array
from warpsmith.hlo.module import HloModule
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.numerics.inputs import Profile, indices, random_array

__all__ = ["CASES", "Case", "inputs_of"]


REDUCERS = """
add_f32 { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
max_f32 { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] maximum(a, b) }
mul_f32 { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] multiply(a, b) }
add_f64 { a = f64[] parameter(0)  b = f64[] parameter(1)  ROOT r = f64[] add(a, b) }
add_bf16 { a = bf16[] parameter(0)  b = bf16[] parameter(1)  ROOT r = bf16[] add(a, b) }
min_f16 { a = f16[] parameter(0)  b = f16[] parameter(1)  ROOT r = f16[] minimum(a, b) }
add_s32 { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT r = s32[] add(a, b) }
mul_u8 { a = u8[] parameter(0)  b = u8[] parameter(1)  ROOT r = u8[] multiply(a, b) }
and_pred { a = pred[] parameter(0)  b = pred[] parameter(1)  ROOT r = pred[] and(a, b) }
add_c64 { a = c64[] parameter(0)  b = c64[] parameter(1)  ROOT r = c64[] add(a, b) }
halves { a = f32[] parameter(0)  b = f32[] parameter(1)  h = f32[] constant(0.5)
  t = f32[] multiply(a, h)  u = f32[] multiply(b, h)  ROOT r = f32[] add(t, u) }
argmax {
  a = f32[] parameter(0)  i = s32[] parameter(1)  b = f32[] parameter(2)  j = s32[] parameter(3)
  g = pred[] compare(a, b), direction=GE
  m = f32[] select(g, a, b)  n = s32[] select(g, i, j)
  ROOT t = (f32[], s32[]) tuple(m, n)
}
"""


@dataclass(frozen=True)
class Case:
    """One fusion.  `indices` gives, for parameters that hold indices, the extent that they index."""

    name: str
    text: str
    profile: Profile = Profile.MIXTURE
    indices: tuple[tuple[int, int], ...] = ()
    device: str = "sm_90"
    large: bool = False

    def module(self) -> HloModule:
        return parse_hlo(self.text)


def inputs_of(case: Case, module: HloModule, seed: int = 0) -> list[Array]:
    """One array a parameter of the entry."""
    limits = dict(case.indices)
    arrays: list[Array] = []
    for i, parameter in enumerate(module.entry.parameters):
        shape = parameter.array_shape
        if i in limits:
            arrays.append(indices(shape.dims, shape.dtype, limits[i], seed=seed, parameter=i))
        else:
            arrays.append(random_array(shape.dtype, shape.dims, seed=seed, parameter=i, profile=case.profile))
    return arrays


def _body(text: str) -> str:
    """A module whose last computation is the fusion's body, given line by line."""
    lines = "\n".join("  " + line.strip() for line in text.strip().splitlines())
    return f"HloModule m\n{REDUCERS}\nfused {{\n{lines}\n}}"


def _rows(shape: str, parameters: Sequence[str], rows: Sequence[tuple[str, str]]) -> str:
    """A body with one root a row (result type, op with operands), all of dims `shape`."""
    lines = [f"p{i} = {each}[{shape}] parameter({i})" for i, each in enumerate(parameters)]
    lines += [f"r{i} = {result}[{shape}] {op}" for i, (result, op) in enumerate(rows)]
    types = ", ".join(f"{result}[{shape}]" for result, _ in rows)
    lines.append(f"ROOT t = ({types}) tuple({', '.join(f'r{i}' for i in range(len(rows)))})")
    return _body("\n".join(lines))


INTEGERS = ("s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64")
SUB_BYTE = ("s4", "u4", "s2")
FLOATS = ("f16", "bf16", "f32", "f64")
DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")
_EXACT_UNARY = ("abs", "ceil", "floor", "negate", "round-nearest-afz", "round-nearest-even", "sign", "sqrt")
_EXACT_BINARY = ("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum")
_EXPONENTIAL = (
    *("exponential", "exponential-minus-one", "log", "log-plus-one", "logistic", "tanh", "erf", "rsqrt", "cbrt"),
)
_CIRCULAR = ("sine", "cosine", "tan", "acos", "asin", "sinh", "cosh", "asinh", "acosh", "atanh")


def _compare(kind: str = "") -> list[tuple[str, str]]:
    suffix = f", type={kind}" if kind else ""
    return [("pred", f"compare(p0, p1), direction={d}{suffix}") for d in DIRECTIONS]


def _elementwise() -> dict[str, Case]:
    cases: dict[str, str] = {}
    for t in FLOATS:
        rows = [(t, f"{op}(p0)") for op in _EXACT_UNARY] + [(t, f"{op}(p0, p1)") for op in _EXACT_BINARY]
        rows += [("pred", "is-finite(p0)"), (t, "clamp(p0, p1, p2)"), (t, "select(p3, p0, p1)")]
        cases[f"{t} exact"] = _rows("7,43", (t, t, t, "pred"), rows)
        cases[f"{t} compare"] = _rows("67", (t, t), _compare() + _compare("TOTALORDER"))
        cases[f"{t} reduce-precision"] = _rows(
            "5,61",
            (t,),
            [
                (t, f"reduce-precision(p0), exponent_bits={e}, mantissa_bits={m}")
                for e, m in ((5, 10), (8, 7), (4, 3), (5, 0))
            ],
        )
        cases[f"{t} exponential"] = _rows("3,111", (t,), [(t, f"{op}(p0)") for op in _EXPONENTIAL])
        cases[f"{t} circular"] = _rows("333", (t,), [(t, f"{op}(p0)") for op in _CIRCULAR])
        cases[f"{t} binary"] = _rows("333", (t, t), [(t, "power(p0, p1)"), (t, "atan2(p0, p1)")])
    for t in ("f8e4m3fn", "f8e5m2"):
        rows = [(t, f"{op}(p0)") for op in ("abs", "negate", "sign", "sqrt", "tanh")]
        rows += [(t, f"{op}(p0, p1)") for op in ("add", "multiply", "divide", "maximum")] + _compare()
        cases[f"{t} elementwise"] = _rows("257", (t, t), rows)
    unary = ("abs", "negate", "not", "sign", "popcnt", "count-leading-zeros")
    binary = ("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or", "xor")
    binary += ("shift-left", "shift-right-logical", "shift-right-arithmetic")
    for t in (*INTEGERS, *SUB_BYTE):
        rows = [(t, f"{op}(p0)") for op in unary if t[0] == "s" or op not in ("abs", "sign")]
        rows += [(t, f"{op}(p0, p1)") for op in binary]
        rows += [(t, "clamp(p0, p1, p2)"), (t, "select(p3, p0, p1)"), *_compare()]
        cases[f"{t} elementwise"] = _rows("9,31", (t, t, t, "pred"), rows)
        cases[f"{t} power"] = _rows("127", (t, t), [(t, "power(p0, p1)")])
    logic = [("pred", f"{op}(p0, p1)") for op in ("and", "or", "xor", "maximum", "minimum", "add", "multiply")]
    logic += [("pred", "not(p0)"), ("pred", "select(p2, p0, p1)"), ("pred", "clamp(p0, p1, p2)"), *_compare()]
    cases["pred elementwise"] = _rows("5,27", ("pred", "pred", "pred"), logic)
    exact = ("add", "subtract", "multiply", "divide")
    rows = [("c64", f"{op}(p0, p1)") for op in exact] + [
        ("c64", "negate(p0)"),
        ("f32", "real(p0)"),
        ("f32", "imag(p0)"),
    ]
    rows += [("pred", f"compare(p0, p1), direction={d}") for d in ("EQ", "NE")] + [("f32", "abs(p0)")]
    cases["c64 elementwise"] = _rows("3,50", ("c64", "c64"), rows)
    rows = [("c128", f"{op}(p0, p1)") for op in exact[:3]] + [("f64", "real(p0)"), ("f64", "imag(p0)")]
    cases["c128 elementwise"] = _rows("3,50", ("c128", "c128"), rows)
    cases["complex of parts"] = _rows("77", ("f32", "f32"), [("c64", "complex(p0, p1)")])
    found = {name: Case(name, text) for name, text in cases.items()}
    # Quotients of components overflow or cancel: compared on tame values, as sums are.
    for name in ("c64 elementwise", "c128 elementwise"):
        found[name] = Case(name, cases[name], Profile.TAME)
    return found


def _converts() -> dict[str, Case]:
    types = (*INTEGERS, *FLOATS, "pred", "f8e4m3fn", "s4", "u4", "c64")
    cases: dict[str, Case] = {}
    for source in types:
        rows = [(target, "convert(p0)") for target in types if target != source and source != "c64"]
        if source == "c64":
            rows = [("c128", "convert(p0)")]
        cases[f"convert {source}"] = Case(f"convert {source}", _rows("3,89", (source,), rows))
    return cases


MOVES: Mapping[str, str] = {
    "broadcast": "x = f32[5,3] parameter(0)\n ROOT r = f32[3,4,5] broadcast(x), dimensions={2,0}",
    "broadcast of a scalar": "x = s8[] parameter(0)\n ROOT r = s8[33] broadcast(x), dimensions={}",
    "reshape and transpose": """x = f32[6,4] parameter(0)
        y = f32[3,8] reshape(x)
        ROOT r = f32[8,3] transpose(y), dimensions={1,0}""",
    "transpose of layouts": """x = f32[6,4]{0,1} parameter(0)
        y = f32[6,4]{1,0} copy(x)
        ROOT r = f32[4,6]{0,1} transpose(y), dimensions={1,0}""",
    "transpose of three": "x = u16[5,6,7] parameter(0)\n ROOT r = u16[7,5,6] transpose(x), dimensions={2,0,1}",
    "column-major in, row-major out": "x = bf16[33,65]{0,1} parameter(0)\n ROOT r = bf16[33,65]{1,0} copy(x)",
    "column-major all along": """x = f32[19,23]{0,1} parameter(0)
        y = f32[19,23]{0,1} parameter(1)
        ROOT r = f32[19,23]{0,1} add(x, y)""",
    "reshape of column-major": "x = f32[6,4]{0,1} parameter(0)\n ROOT r = f32[3,8]{1,0} reshape(x)",
    "bitcast": "x = f32[6,4] parameter(0)\n n = f32[6,4] negate(x)\n ROOT r = f32[3,8] bitcast(n)",
    "slice": "x = f32[20,7] parameter(0)\n ROOT r = f32[6,3] slice(x), slice={[2:20:3],[1:7:2]}",
    "reverse": "x = s16[20,7] parameter(0)\n ROOT r = s16[20,7] reverse(x), dimensions={1,0}",
    "pad": "x = f32[5,7] parameter(0)\n v = f32[] parameter(1)\n ROOT r = f32[12,6] pad(x, v), padding=2_1_1x-1_0_0",
    "pad that crops": "x = u8[5] parameter(0)\n v = u8[] parameter(1)\n ROOT r = u8[7] pad(x, v), padding=-2_-4_2",
    "pad of arithmetic": """x = bf16[9,30] parameter(0)
        e = bf16[9,30] exponential(x)
        z = bf16[] constant(0)
        p = bf16[12,40] pad(e, z), padding=1_2x3_7
        ROOT r = bf16[12,40] negate(p)""",
    "concatenate": """x = f32[5,2] parameter(0)
        y = f32[5,3] parameter(1)
        z = f32[5,1] parameter(2)
        ROOT r = f32[5,8] concatenate(x, y, z, x), dimensions={1}""",
    "concatenate rows": """x = s8[3,50] parameter(0)
        y = s8[4,50] parameter(1)
        n = s8[4,50] negate(y)
        ROOT r = s8[7,50] concatenate(x, n), dimensions={0}""",
    "iota bf16": "ROOT r = bf16[5,300] iota(), iota_dimension=1",
    "iota that wraps": "ROOT r = s8[300] iota(), iota_dimension=0",
    "iota complex": "ROOT r = c64[30] iota(), iota_dimension=0",
    "iota 64 bits": "ROOT r = u64[3,30] iota(), iota_dimension=1",
    "iota and mask": """x = f32[16,16] parameter(0)
        i = s32[16,16] iota(), iota_dimension=0
        j = s32[16,16] iota(), iota_dimension=1
        c = pred[16,16] compare(i, j), direction=GE
        n = f32[] constant(-inf)
        b = f32[16,16] broadcast(n), dimensions={}
        ROOT r = f32[16,16] select(c, x, b)""",
    "constant": """x = f32[2,3] parameter(0)
        c = f32[2,3] constant({{1,2,3},{4,5,-6}})
        ROOT r = f32[2,3] add(x, c)""",
    "constant unsigned": "x = u8[4] parameter(0)\n c = u8[4] constant({1,255,128,7})\n ROOT r = u8[4] add(x, c)",
    "constant pred": """x = pred[4] parameter(0)
        c = pred[4] constant({true,false,true,false})
        ROOT r = pred[4] and(x, c)""",
    "constant bf16 transposed": """x = bf16[3,2] parameter(0)
        c = bf16[2,3] constant({{1,-2,0.5},{4,inf,-6}})
        t = bf16[3,2] transpose(c), dimensions={1,0}
        ROOT r = bf16[3,2] multiply(x, t)""",
    "constant complex": "x = c64[2] parameter(0)\n c = c64[2] constant({(1,2),(3,-4)})\n ROOT r = c64[2] add(x, c)",
    "constant lookup": """i = s32[9] parameter(0)
        c = f32[5] constant({1.5,-2,0,4,8})
        one = s32[1] slice(i), slice={[3:4]}
        s = s32[] reshape(one)
        ROOT r = f32[3] dynamic-slice(c, s), dynamic_slice_sizes={3}""",
    "bits to narrower": "x = f32[5,3] parameter(0)\n ROOT r = u8[5,3,4] bitcast-convert(x)",
    "bits to wider": "x = u8[5,3,4] parameter(0)\n ROOT r = f32[5,3] bitcast-convert(x)",
    "bits of one width": """x = bf16[5,13] parameter(0)
        a = s16[5,13] bitcast-convert(x)
        b = u16[5,13] bitcast-convert(a)
        c = f16[5,13] bitcast-convert(b)
        ROOT r = (s16[5,13], f16[5,13]) tuple(a, c)""",
    "map": """x = f32[5,9] parameter(0)
        y = f32[5,9] parameter(1)
        ROOT r = f32[5,9] map(x, y), dimensions={0,1}, to_apply=halves""",
    "scalar": "x = f32[] parameter(0)\n ROOT r = f32[] tanh(x)",
    "scalar and row": """x = f32[] parameter(0)
        y = f32[1,37] parameter(1)
        b = f32[1,37] broadcast(x), dimensions={}
        ROOT r = f32[1,37] multiply(b, y)""",
    "dims of one": """x = f32[1,5,1,7,1] parameter(0)
        y = f32[5,7] reshape(x)
        n = f32[5,7] negate(y)
        ROOT r = f32[1,7,5,1] transpose(f), dimensions={0,2,1,3}""".replace("transpose(f)", "transpose(g)").replace(
        "ROOT r", "g = f32[1,5,7,1] reshape(n)\n ROOT r"
    ),
    "one element": "x = u32[1,1] parameter(0)\n ROOT r = u32[1,1] not(x)",
    "sub-byte in": "x = s4[7] parameter(0)\n w = s8[7] convert(x)\n ROOT r = s8[7] multiply(w, w)",
    "sub-byte out": "x = s32[41] parameter(0)\n ROOT r = u4[41] convert(x)",
    "sub-byte reverse": "x = u4[5,7] parameter(0)\n ROOT r = u4[5,7] reverse(x), dimensions={1}",
    "sub-byte transpose": "x = s4[15,10] parameter(0)\n ROOT r = s4[10,15] transpose(x), dimensions={1,0}",
    "sub-byte pad": """x = s4[9] parameter(0)
        v = s4[] constant(-3)
        ROOT r = s4[20] pad(x, v), padding=1_2_1""",
    "sub-byte concatenate": """x = s2[3,3] parameter(0)
        y = s2[3,6] parameter(1)
        ROOT r = s2[3,9] concatenate(x, y), dimensions={1}""",
    "sub-byte scalar": "x = u4[] parameter(0)\n ROOT r = u4[] not(x)",
    "sub-byte slice": "x = u4[40] parameter(0)\n ROOT r = u4[13] slice(x), slice={[1:40:3]}",
    "sub-byte and wide outputs": """x = s4[99] parameter(0)
        w = f32[99] convert(x)
        n = s4[99] negate(x)
        ROOT r = (f32[99], s4[99]) tuple(w, n)""",
    "sub-byte iota": "ROOT r = s4[3,11] iota(), iota_dimension=1",
    "sub-byte constant": "x = u4[4] parameter(0)\n c = u4[4] constant({1,15,8,7})\n ROOT r = u4[4] add(x, c)",
}

SUMS: Mapping[str, str] = {
    "reduce": """x = f32[5,9,4] parameter(0)
        z = f32[] parameter(1)
        ROOT r = f32[9] reduce(x, z), dimensions={0,2}, to_apply=add_f32""",
    "reduce rows": """x = f32[33,70] parameter(0)
        z = f32[] constant(0)
        ROOT r = f32[33] reduce(x, z), dimensions={1}, to_apply=add_f32""",
    "reduce columns": """x = f32[33,70] parameter(0)
        z = f32[] constant(0)
        ROOT r = f32[70] reduce(x, z), dimensions={0}, to_apply=add_f32""",
    "reduce maximum": """x = f32[5,9,40] parameter(0)
        z = f32[] constant(-inf)
        ROOT r = f32[5,40] reduce(x, z), dimensions={1}, to_apply=max_f32""",
    "reduce bf16": """x = bf16[5,300] parameter(0)
        z = bf16[] constant(0)
        ROOT r = bf16[5] reduce(x, z), dimensions={1}, to_apply=add_bf16""",
    "reduce f16 minimum": """x = f16[20,34] parameter(0)
        z = f16[] constant(inf)
        ROOT r = f16[34] reduce(x, z), dimensions={0}, to_apply=min_f16""",
    "reduce f64": """x = f64[20,34] parameter(0)
        z = f64[] constant(0)
        ROOT r = f64[20] reduce(x, z), dimensions={1}, to_apply=add_f64""",
    "reduce s32": """x = s32[5,9] parameter(0)
        z = s32[] constant(1)
        ROOT r = s32[5] reduce(x, z), dimensions={1}, to_apply=add_s32""",
    "reduce u8 product": """x = u8[9,40] parameter(0)
        z = u8[] constant(1)
        ROOT r = u8[40] reduce(x, z), dimensions={0}, to_apply=mul_u8""",
    "reduce pred": """x = pred[9,4] parameter(0)
        z = pred[] constant(true)
        ROOT r = pred[9] reduce(x, z), dimensions={1}, to_apply=and_pred""",
    "reduce complex": """x = c64[9,4] parameter(0)
        z = c64[] constant((0,0))
        ROOT r = c64[9] reduce(x, z), dimensions={1}, to_apply=add_c64""",
    "reduce to a scalar": """x = f32[64] parameter(0)
        z = f32[] constant(0)
        ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add_f32""",
    "reduce of arithmetic": """x = f32[12,31] parameter(0)
        e = f32[12,31] tanh(x)
        s = f32[12,31] multiply(e, x)
        z = f32[] constant(0)
        t = f32[12] reduce(s, z), dimensions={1}, to_apply=add_f32
        ROOT r = f32[12] negate(t)""",
    "reduce by a program": """x = f32[7,40] parameter(0)
        z = f32[] constant(0.25)
        ROOT r = f32[40] reduce(x, z), dimensions={0}, to_apply=halves""",
    "reduce with index": """x = f32[5,9] parameter(0)
        i = s32[5,9] iota(), iota_dimension=1
        z = f32[] constant(-inf)
        k = s32[] constant(0)
        ROOT r = (f32[5], s32[5]) reduce(x, i, z, k), dimensions={1}, to_apply=argmax""",
    "reduce of nothing": """x = f32[5,0] parameter(0)
        z = f32[] constant(3)
        ROOT r = f32[5] reduce(x, z), dimensions={1}, to_apply=add_f32""",
    "softmax head": """x = f32[6,50] parameter(0)
        m = f32[6] parameter(1)
        b = f32[6,50] broadcast(m), dimensions={0}
        s = f32[6,50] subtract(x, b)
        e = f32[6,50] exponential(s)
        z = f32[] constant(0)
        ROOT r = f32[6] reduce(e, z), dimensions={1}, to_apply=add_f32""",
    "reduce-window": """x = f32[9,8] parameter(0)
        z = f32[] constant(0)
        ROOT r = f32[5,7] reduce-window(x, z), window={size=3x2 stride=2x1 pad=1_1x0_0}, to_apply=add_f32""",
    "reduce-window dilated": """x = f32[9] parameter(0)
        z = f32[] constant(-inf)
        ROOT r = f32[8] reduce-window(x, z), window={size=3 stride=2 pad=1_2 lhs_dilate=2 rhs_dilate=2},
          to_apply=max_f32""",
    "dot": """x = f32[5,9] parameter(0)
        y = f32[9,40] parameter(1)
        ROOT r = f32[5,40] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
    "dot bf16 batched": """x = bf16[3,5,9] parameter(0)
        y = bf16[3,9,4] parameter(1)
        ROOT r = f32[3,5,4] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2},
          rhs_contracting_dims={1}""",
    "dot s8": """x = s8[5,9] parameter(0)
        y = s8[9,4] parameter(1)
        ROOT r = s32[5,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
    "convolution": """x = f32[2,5,6,4] parameter(0)
        y = f32[3,2,4,3] parameter(1)
        ROOT r = f32[2,3,5,3] convolution(x, y), window={size=3x2 stride=2x1 pad=1_1x0_0},
          dim_labels=b01f_01io->b01f""",
    "convolution grouped": """x = f32[2,5,4] parameter(0)
        y = f32[3,2,6] parameter(1)
        ROOT r = f32[2,9,6] convolution(x, y), window={size=3 pad=1_1 lhs_dilate=2 rhs_reversal=1},
          dim_labels=b0f_0io->b0f, feature_group_count=2""",
}

SHARED: Mapping[str, str] = {
    "log, transpose, add": """x = f32[20,30] parameter(0)
        y = f32[30,20] parameter(1)
        l = f32[20,30] log(x)
        t = f32[30,20] transpose(l), dimensions={1,0}
        ROOT r = f32[30,20] add(t, y)""",
    "log and its transpose": """x = f32[20,20] parameter(0)
        l = f32[20,20] log(x)
        t = f32[20,20] transpose(l), dimensions={1,0}
        ROOT r = f32[20,20] add(t, l)""",
    "diamond": """x = f32[9,50] parameter(0)
        a = f32[9,50] multiply(x, x)
        b = f32[9,50] add(a, x)
        c = f32[9,50] subtract(a, b)
        d = f32[9,50] multiply(b, c)
        ROOT r = f32[9,50] add(d, a)""",
    "many diamonds": "x = f32[77] parameter(0)\n"
    + "\n".join(
        f"v{i} = f32[77] add({'x' if not i else f'v{i - 1}'}, {'x' if not i else f'v{i - 1}'})" for i in range(20)
    )
    + "\n ROOT r = f32[77] negate(v19)",
    "two outputs": """x = f32[9,50] parameter(0)
        y = f32[9,50] parameter(1)
        s = f32[9,50] add(x, y)
        d = f32[9,50] subtract(x, y)
        p = f32[9,50] multiply(s, d)
        ROOT r = (f32[9,50], f32[9,50], f32[9,50]) tuple(p, s, d)""",
    "outputs of different types": """x = f32[9,50] parameter(0)
        b = bf16[9,50] convert(x)
        z = f32[] constant(0)
        w = f32[9,50] broadcast(z), dimensions={}
        c = pred[9,50] compare(x, w), direction=GT
        i = s8[9,50] convert(x)
        ROOT r = (bf16[9,50], pred[9,50], s8[9,50]) tuple(b, c, i)""",
    "outputs of different shapes": """x = f32[6,50] parameter(0)
        n = f32[6,50] negate(x)
        f = f32[300] reshape(n)
        s = f32[3,50] slice(x), slice={[1:4],[0:50]}
        ROOT r = (f32[6,50], f32[300], f32[3,50]) tuple(n, f, s)""",
    "an output twice": """x = f32[45] parameter(0)
        n = f32[45] negate(x)
        ROOT r = (f32[45], f32[45]) tuple(n, n)""",
    "an input as output": """x = f32[45] parameter(0)
        y = f32[45] parameter(1)
        n = f32[45] add(x, y)
        ROOT r = (f32[45], f32[45]) tuple(x, n)""",
    "gelu bf16": """x = bf16[7,129] parameter(0)
        h = bf16[] constant(0.5)
        hb = bf16[7,129] broadcast(h), dimensions={}
        k = bf16[] constant(0.044708)
        kb = bf16[7,129] broadcast(k), dimensions={}
        s = bf16[] constant(0.796875)
        sb = bf16[7,129] broadcast(s), dimensions={}
        o = bf16[] constant(1)
        ob = bf16[7,129] broadcast(o), dimensions={}
        x2 = bf16[7,129] multiply(x, x)
        x3 = bf16[7,129] multiply(x2, x)
        kx = bf16[7,129] multiply(x3, kb)
        a = bf16[7,129] add(x, kx)
        m = bf16[7,129] multiply(a, sb)
        t = bf16[7,129] tanh(m)
        u = bf16[7,129] add(t, ob)
        v = bf16[7,129] multiply(u, hb)
        ROOT r = bf16[7,129] multiply(x, v)""",
    "bias and relu": """x = f16[12,77] parameter(0)
        b = f16[77] parameter(1)
        w = f16[12,77] broadcast(b), dimensions={1}
        a = f16[12,77] add(x, w)
        z = f16[] constant(0)
        zb = f16[12,77] broadcast(z), dimensions={}
        ROOT r = f16[12,77] maximum(a, zb)""",
    "select between slices": """x = f32[10,30] parameter(0)
        c = pred[10,15] parameter(1)
        a = f32[10,15] slice(x), slice={[0:10],[0:15]}
        b = f32[10,15] slice(x), slice={[0:10],[15:30]}
        ROOT r = f32[10,15] select(c, a, b)""",
    "nested pads": """x = f32[4,5] parameter(0)
        v = f32[] parameter(1)
        a = f32[6,7] pad(x, v), padding=1_1x1_1
        b = f32[6,7] multiply(a, a)
        c = f32[8,9] pad(b, v), padding=1_1x1_1
        ROOT r = f32[8,9] add(c, c)""",
    "pad, reverse, slice": """x = s32[9,12] parameter(0)
        v = s32[] constant(-7)
        p = s32[11,14] pad(x, v), padding=1_1x0_2
        q = s32[11,14] reverse(p), dimensions={0}
        ROOT r = s32[5,14] slice(q), slice={[1:11:2],[0:14]}""",
}

INDEXED: tuple[tuple[str, str, tuple[tuple[int, int], ...]], ...] = (
    (
        "dynamic-slice s32",
        """x = f32[20,30] parameter(0)
        i = s32[] parameter(1)
        j = s32[] parameter(2)
        ROOT r = f32[5,30] dynamic-slice(x, i, j), dynamic_slice_sizes={5,30}""",
        ((1, 20), (2, 30)),
    ),
    (
        "dynamic-slice u8",
        """x = bf16[300,3] parameter(0)
        i = u8[] parameter(1)
        j = u8[] parameter(2)
        ROOT r = bf16[50,2] dynamic-slice(x, i, j), dynamic_slice_sizes={50,2}""",
        ((1, 300), (2, 3)),
    ),
    (
        "dynamic-slice s64",
        """x = s16[40] parameter(0)
        i = s64[] parameter(1)
        ROOT r = s16[9] dynamic-slice(x, i), dynamic_slice_sizes={9}""",
        ((1, 40),),
    ),
    (
        "dynamic-slice of arithmetic",
        """x = f32[20,30] parameter(0)
        i = s32[] parameter(1)
        e = f32[20,30] exponential(x)
        z = s32[] constant(0)
        s = f32[1,30] dynamic-slice(e, i, z), dynamic_slice_sizes={1,30}
        ROOT r = f32[30] reshape(s)""",
        ((1, 20),),
    ),
    (
        "dynamic-update-slice",
        """x = f32[20,30] parameter(0)
        u = f32[5,6] parameter(1)
        i = s32[] parameter(2)
        j = s32[] parameter(3)
        ROOT r = f32[20,30] dynamic-update-slice(x, u, i, j)""",
        ((2, 20), (3, 30)),
    ),
    (
        "dynamic-update-slice of arithmetic",
        """x = bf16[300] parameter(0)
        u = bf16[70] parameter(1)
        i = u32[] parameter(2)
        e = bf16[70] negate(u)
        d = bf16[300] dynamic-update-slice(x, e, i)
        ROOT r = bf16[300] abs(d)""",
        ((2, 300),),
    ),
    (
        "gather rows",
        """x = f32[20,30] parameter(0)
        i = s32[7] parameter(1)
        ROOT r = f32[7,30] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
          index_vector_dim=1, slice_sizes={1,30}""",
        ((1, 20),),
    ),
    (
        "gather pairs",
        """x = s8[20,30] parameter(0)
        i = s64[4,5,2] parameter(1)
        ROOT r = s8[4,5,3] gather(x, i), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0,1},
          index_vector_dim=2, slice_sizes={1,3}""",
        ((1, 25),),
    ),
    (
        "dynamic-slice s4",
        """x = s4[20,31] parameter(0)
        i = s32[] parameter(1)
        j = s32[] parameter(2)
        ROOT r = s4[5,30] dynamic-slice(x, i, j), dynamic_slice_sizes={5,30}""",
        ((1, 20), (2, 30)),
    ),
    (
        "dynamic-update-slice s4",
        """x = u4[101] parameter(0)
        u = u4[30] parameter(1)
        i = s32[] parameter(2)
        ROOT r = u4[101] dynamic-update-slice(x, u, i)""",
        ((2, 101),),
    ),
    (
        "gather u8 indices",
        """x = f16[300] parameter(0)
        i = u8[40] parameter(1)
        g = f16[40,1] gather(x, i), offset_dims={1}, collapsed_slice_dims={}, start_index_map={0},
          index_vector_dim=1, slice_sizes={1}
        ROOT r = f16[40] reshape(g)""",
        ((1, 300),),
    ),
)

# Large enough for unrolled code: 58 SMs of 1536 threads are 89,088.
LARGE: Mapping[str, tuple[str, str]] = {
    "large f32": (
        "l4",
        "x = f32[300,300] parameter(0)\n y = f32[300,300] parameter(1)\n ROOT r = f32[300,300] multiply(x, y)",
    ),
    "large bf16, odd rows": ("l4", "x = bf16[90001] parameter(0)\n ROOT r = bf16[90001] multiply(x, x)"),
    "large pairs": ("l4", "x = f32[45001,2] parameter(0)\n ROOT r = f32[45001,2] negate(x)"),
    "large s8": (
        "l4",
        "x = s8[128,1024] parameter(0)\n y = s8[128,1024] parameter(1)\n ROOT r = s8[128,1024] add(x, y)",
    ),
    "large f64": ("l4", "x = f64[100,900] parameter(0)\n ROOT r = f64[100,900] add(x, x)"),
    "large transpose": (
        "l4",
        """x = f32[256,400] parameter(0)
        l = f32[256,400] negate(x)
        t = f32[400,256] transpose(l), dimensions={1,0}
        y = f32[400,256] parameter(1)
        ROOT r = f32[400,256] add(t, y)""",
    ),
    "large broadcast": (
        "l4",
        """x = f16[300,304] parameter(0)
        b = f16[304] parameter(1)
        w = f16[300,304] broadcast(b), dimensions={1}
        ROOT r = f16[300,304] add(x, w)""",
    ),
    "large pad": (
        "l4",
        """x = f32[299,300] parameter(0)
        v = f32[] constant(1)
        ROOT r = f32[304,304] pad(x, v), padding=2_3x1_3""",
    ),
    "large s4": ("l4", "x = s4[300,301] parameter(0)\n ROOT r = s4[300,301] negate(x)"),
    "large two outputs": (
        "l4",
        """x = f32[300,304] parameter(0)
        b = bf16[300,304] convert(x)
        n = f32[300,304] negate(x)
        ROOT r = (bf16[300,304], f32[300,304]) tuple(b, n)""",
    ),
    "large reduce": (
        "l4",
        """x = f32[90112,3] parameter(0)
        z = f32[] constant(0)
        ROOT r = f32[90112] reduce(x, z), dimensions={1}, to_apply=add_f32""",
    ),
    "large blackwell": (
        "sm_100",
        "x = f16[296,1024] parameter(0)\n y = f16[296,1024] parameter(1)\n ROOT r = f16[296,1024] add(x, y)",
    ),
    "large table": (
        "l4",
        "x = bf16[70001] parameter(0)\n t = bf16[70001] tanh(x)\n ROOT r = bf16[70001] multiply(t, x)",
    ),
    "large slice": (
        "l4",
        "x = u16[300,700] parameter(0)\n ROOT r = u16[298,304] slice(x), slice={[1:299],[3:611:2]}",
    ),
}


def _all() -> dict[str, Case]:
    cases = {**_elementwise(), **_converts()}
    for name, text in MOVES.items():
        cases[name] = Case(name, _body(text))
    for name, text in SUMS.items():
        cases[name] = Case(name, _body(text), Profile.TAME)
    for name, text in SHARED.items():
        cases[name] = Case(name, _body(text))
    for name, text, limits in INDEXED:
        cases[name] = Case(name, _body(text), indices=limits)
    for name, (device, text) in LARGE.items():
        profile = Profile.TAME if "reduce" in name else Profile.MIXTURE
        cases[name] = Case(name, _body(text), profile, device=device, large=True)
    return cases


CASES: Mapping[str, Case] = _all()
