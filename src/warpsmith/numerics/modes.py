"""The numerics modes, `strict` and `xla`, and each point in which they differ.

Data only: the compiler reads the mode, and which `ATOMIC_ADDS` keep subnormals; the documentation prints those,
`DIFFERENCES`, where `xla` still isn't XLA:GPU (`KEPT`), and what HLO leaves `OPEN`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from warpsmith.errors import UsageError, did_you_mean, require

__all__ = [
    "ATOMIC_ADDS",
    "DIFFERENCES",
    "KEPT",
    "OPEN",
    "AtomicAdd",
    "Difference",
    "Example",
    "Kept",
    "Mode",
    "Open",
    "mode",
]


class Mode(Enum):
    """What arithmetic a compiled module promises.

    `STRICT` (the default): no contraction to FMA, no excess precision, no fold that changes a value, IEEE division and
    square root, subnormals kept, integers that wrap, elementary functions within `bounds.py`.  `XLA`: what XLA:GPU
    0.10.2 does, which is `STRICT` but for the rows of `DIFFERENCES`.

    In both, a float reduce, reduce-window or dot whose combiner is one add or multiply keeps its partial results in
    f32 or wider and rounds once, in an order that is fixed for a shape and a target.  A scatter rounds after each
    update, but where a GPU combines those of neighbouring equal indices first: that partial result is of this kind.
    """

    STRICT = "strict"
    XLA = "xla"


@dataclass(frozen=True, slots=True)
class Example:
    """An input where the modes differ: a fusion's instructions, its parameters' bits, and the result's bits in each.

    `text` names the parameters p0, p1..., and `sum`, a computation that adds two; its last line is the root.  Bits are
    one number an element.
    """

    text: str
    parameters: tuple[tuple[int, ...], ...]
    strict: tuple[int, ...]
    xla: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """One point in which the modes differ: op, element types, targets ("GPU", or "CPU, GPU"), and what each does.

    A row for a GPU alone holds nothing of a CPU, which computes as in `strict`.  The bits of approximate instructions
    are the hardware's own: an example's are those of an exact unit, as the simulator has.
    """

    name: str
    opcode: str
    dtypes: tuple[str, ...]
    targets: str
    strict: str
    xla: str
    example: Example | None = None


@dataclass(frozen=True, slots=True)
class AtomicAdd:
    """An NVIDIA GPU's instruction that adds a float to memory, from the compute capability (times ten) `since` on.

    `flushes`: it takes subnormal operands for zeros and gives zeros for subnormal sums.
    """

    dtype: str
    memory: str
    instruction: str
    since: int
    flushes: bool


@dataclass(frozen=True, slots=True)
class Kept:
    """One point in which the mode `xla` isn't XLA:GPU: what that does, and why it isn't followed."""

    where: str
    upstream: str
    here: str


@dataclass(frozen=True, slots=True)
class Open:
    """One point that HLO leaves open: what was chosen here in `strict`, and what XLA:GPU does."""

    question: str
    chosen: str
    upstream: str


# PTX ISA, "Parallel Synchronization and Communication Instructions: atom".
ATOMIC_ADDS: tuple[AtomicAdd, ...] = (
    AtomicAdd("f16", "global, shared", "atom.add.noftz.f16", 70, flushes=False),
    AtomicAdd("bf16", "global, shared", "atom.add.noftz.bf16", 90, flushes=False),
    AtomicAdd("f32", "global", "atom.global.add.f32", 20, flushes=True),
    AtomicAdd("f32", "shared", "atom.shared.add.f32", 20, flushes=False),
    AtomicAdd("f64", "global, shared", "atom.add.f64", 60, flushes=False),
)
"""Whatever else is done to a float in one step is a loop of compare-and-swap around ordinary arithmetic."""

_INF, _NAN = 0x7F800000, 0x7FC00000

DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "division",
        "divide",
        ("f32", "f16", "bf16"),
        "GPU",
        "`div.rn.f32`: correctly rounded",
        "`div.full.f32`, within 2 ulp of f32; `rcp.approx.f32` of a reciprocal, within 1",
    ),
    Difference(
        "sqrt",
        "sqrt",
        ("f32", "f16", "bf16"),
        "GPU",
        "`sqrt.rn.f32`: correctly rounded",
        "`sqrt.approx.f32`, relative error 2^-23",
    ),
    Difference(
        "rsqrt",
        "rsqrt",
        ("f32", "f16", "bf16"),
        "GPU",
        "`sqrt.rn.f32` and `div.rn.f32`: within 1 ulp",
        "`rsqrt.approx.f32`, relative error 2^-22.9",
        Example("r = f32[1] rsqrt(p0)", ((0x3EC00000,),), (0x3FD105EB,), (0x3FD105EC,)),
    ),
    Difference(
        "exp-16-bit",
        "exponential",
        ("f16", "bf16"),
        "GPU",
        "an expansion in f32, rounded once",
        "`ex2.approx.f32` of x times log2 e, rounded once",
        Example("r = f16[1] exponential(p0)", ((0xC13B,),), (0x2CAE,), (0x2CAF,)),
    ),
    Difference(
        "log-16-bit",
        "log",
        ("f16", "bf16"),
        "GPU",
        "an expansion in f32, rounded once",
        "`lg2.approx.f32` times ln 2, rounded once",
        Example("r = f16[1] log(p0)", ((0x358B,),), (0xBC3E,), (0xBC3D,)),
    ),
    Difference(
        "logistic",
        "logistic",
        ("f32", "f64"),
        "CPU, GPU",
        "from e**-|x|: small results keep their digits, subnormal results too",
        "1 / (1 + e**-x): 0 where e**-x overflows",
        Example("r = f32[1] logistic(p0)", ((0xC2C80000,),), (0x0000001B,), (0x00000000,)),
    ),
    Difference(
        "logistic-16-bit",
        "logistic",
        ("f16", "bf16"),
        "CPU, GPU",
        "in f32, rounded once",
        "1 / (1 + e**-x), each step rounded to 16 bits",
        Example("r = bf16[1] logistic(p0)", ((0xC0A0,),), (0x3BDB,), (0x3BDC,)),
    ),
    Difference(
        "tanh",
        "tanh",
        ("f32",),
        "CPU, GPU",
        "within the bound everywhere",
        "a rational function of degree 13 over 6, with FMA; x itself where |x| < 0.0004",
        Example("r = f32[1] tanh(p0)", ((0xC0980000,),), (0xBF7FF62F,), (0xBF7FF632,)),
    ),
    Difference(
        "erf",
        "erf",
        ("f32",),
        "CPU, GPU",
        "within the bound everywhere",
        "a rational function in x**2, with FMA; 1 from |x| = 3.7439 on",
        Example("r = f32[1] erf(p0)", ((0xC0780000,),), (0xBF7FFFFE,), (0xBF800000,)),
    ),
    Difference(
        "excess-precision",
        "convert",
        ("f16", "bf16", "f32", "f64"),
        "CPU, GPU",
        "each convert rounds",
        "a convert to a narrower type and straight back is no operation",
        Example("c = bf16[1] convert(p0)\nr = f32[1] convert(c)", ((0x3F800001,),), (0x3F800000,), (0x3F800001,)),
    ),
    Difference(
        "dot-f16",
        "dot",
        ("f16",),
        "CPU, GPU",
        "f32 partial sums, rounded once",
        "each product and each sum rounded to f16",
        Example(
            "r = f16[] dot(p0, p1), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
            ((0x6800, 0x3C00, 0x3C00), (0x3C00, 0x3C00, 0x3C00)),
            (0x6801,),
            (0x6800,),
        ),
    ),
    Difference(
        "compare-total-order",
        "compare",
        ("f16", "bf16", "f32", "f64"),
        "CPU, GPU",
        "type=TOTALORDER: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN",
        "inside a fusion the type is ignored: an ordinary compare",
        Example("r = pred[1] compare(p0, p1), direction=LT, type=TOTALORDER", ((0x80000000,), (0,)), (1,), (0,)),
    ),
    Difference(
        "multiply-c64",
        "multiply",
        ("c64",),
        "CPU, GPU",
        "in f64, rounded once: a finite part comes out finite",
        "in f32: a product that overflows makes NaN of its part",
        # (2**127 + 2**127 i) squared is 2**255 i.
        Example("r = c64[1] multiply(p0, p0)", ((0x7F0000007F000000,),), (_INF << 32,), (_INF << 32 | _NAN,)),
    ),
    Difference(
        "scatter-add",
        "scatter",
        ("f32", "c64"),
        "GPU",
        "a sum whose indices may repeat is a loop of compare-and-swap: subnormal numbers are kept",
        "`atom.global.add.f32`, to which subnormal operands and sums are zeros",
        # 1e-40 + (2e-40 + 3e-40)
        Example(
            "i = s32[2,1] constant({{0},{0}})\n"
            "r = f32[1] scatter(p0, i, p1), update_window_dims={}, inserted_window_dims={0}, "
            "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum",
            ((71362,), (142725, 214087)),
            (428174,),
            (0,),
        ),
    ),
)

KEPT: tuple[Kept, ...] = (
    Kept(
        "elementary functions of f32 on a GPU, but tanh and erf",
        "CUDA's libdevice, within 2 ulp or so",
        "our own programs, the same on all targets, within the bounds of the accuracy table; f64 is libdevice here too",
    ),
    Kept(
        "tanh and erf of f16 and bf16",
        "libdevice's f32 functions, or XLA's own in f32, rounded once",
        "our own programs, rounded once: within 1 ulp",
    ),
    Kept("complex functions of c64 but multiply", "formulas in f32", "in f64, rounded once"),
    Kept(
        "sum of floats whose terms are all -0",
        "the initial +0 may be dropped (nsz), which leaves -0",
        "-0 + the initial +0 is +0",
    ),
    Kept(
        "dot of 8-bit floats inside a fusion", "a product in the 8-bit type, which its compiler then refuses", "in f32"
    ),
    Kept(
        "convert of f32 and f16 to f8e4m3fn and f8e5m2 on sm_89 and later",
        "`cvt.rn.satfinite`, which saturates, and a select of NaN or infinity where that overflowed",
        "integer arithmetic: the same values, of all inputs",
    ),
)

OPEN: tuple[Open, ...] = (
    Open(
        "the order of a float reduce, reduce-window or dot, and the precision of its partial results",
        "f32 or wider, rounded once; the order is fixed for a shape and a target",
        "f32 for bf16, the type itself for others; the order depends on the emitter",
    ),
    Open(
        "the precision of a scatter's sums and products of floats",
        "each update is rounded to the type; on a GPU, those of sorted equal indices meet in f32 or wider first",
        "each update is rounded to the type",
    ),
    Open(
        "which of several NaNs an argmax or argmin is at, if its computation keeps the first of two",
        "the first one, or, in kernels that reduce rows side by side, any of them; always the same one",
        "any of them",
    ),
    Open("an integer divided by zero", "-1 (all ones); the remainder is the dividend", "the same"),
    Open("MIN / -1", "MIN; the remainder is 0", "the same"),
    Open("a shift by the width or more", "0, or the sign for an arithmetic shift to the right", "the same"),
    Open("a float beyond an integer's range", "the nearest integer; NaN gives 0", "the same"),
    Open("maximum and minimum of NaN", "NaN; -0 is below +0", "the same"),
    Open("clamp with bounds the wrong way round", "the upper bound: min(max(x, low), high)", "the same"),
    Open("NaN's payload and sign", "any NaN", "any NaN"),
    Open(
        "an index out of range",
        "gather, dynamic-slice and dynamic-update-slice clamp; a scatter's update is dropped whole",
        "the same",
    ),
    Open(
        "the order of a scatter's updates to one element",
        "their order in the update array; on a GPU so with `--deterministic`, else none: atomics",
        "none: atomics",
    ),
    Open("contraction of a multiply and an add", "never", "never (PTX has `mul.rn` and `add.rn`)"),
    Open("subnormal numbers", "kept", "kept (xla_gpu_ftz is off), but by atomic additions of f32"),
    Open(
        "f8 overflow",
        "infinity where the type has it, NaN in the FN and FNUZ types, the largest value in f4e2m1fn",
        "the same",
    ),
    Open(
        "f8e8m0fnu results below 2^-127",
        "2^-127 for positive ones, NaN for zero and negative ones",
        "through f32, where 2^-150 and less is zero, and so NaN",
    ),
)


def mode(name: str) -> Mode:
    """The mode called `name`; UsageError otherwise."""
    for one in Mode:
        if one.value == name:
            return one
    names = [one.value for one in Mode]
    require(name, str, "a numerics mode is a name", help=f"one of {', '.join(names)}")
    raise UsageError(
        f"no numerics mode is called '{name}'", help=did_you_mean(name, names) or f"one of {', '.join(names)}"
    )
