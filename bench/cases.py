"""What the benchmarks run: HLO text, and the same function for jax.

`RUN` holds the cases of run_time.py.  `fusion_text(n)` makes modules of n different fusions and `chain_text` /
`diamond_text` fusions of n ops for compile_time.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["OTHERS", "RUN", "Case", "chain_text", "diamond_text", "gelu_text", "many_fusions"]

# The shape of a function for jax is written with `lax`, one op for each HLO instruction: then both compile the same.
JaxFunction = Callable[[Any], Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class Case:
    """A module and its twin: `jax(lax)` gives the function; `goal` is the most that ours may take of XLA's time."""

    name: str
    text: str
    jax: JaxFunction
    goal: float | None = None


def _dims(shape: tuple[int, ...]) -> str:
    return ",".join(map(str, shape))


def module(body: str, parameters: list[str], result: str) -> str:
    """A module of one fusion; `body` reads %p0, %p1... and its ROOT is the result."""
    arguments = "\n".join(f"  %p{i} = {shape} parameter({i})" for i, shape in enumerate(parameters))
    names = ", ".join(f"%p{i}" for i in range(len(parameters)))
    return (
        f"HloModule bench\n\nadd {{\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n"
        f"  ROOT %s = f32[] add(%a, %b)\n}}\n\n"
        f"body {{\n{arguments}\n{body}\n}}\n\n"
        f"ENTRY main {{\n{arguments}\n  ROOT %f = {result} fusion({names}), kind=kLoop, calls=body\n}}\n"
    )


def gelu_text(dtype: str, shape: tuple[int, ...], *, prefix: str = "") -> str:
    """GELU in its tanh form, each step an instruction of its own."""
    return module(
        _gelu_body(f"{dtype}[{_dims(shape)}]", dtype, prefix), [f"{dtype}[{_dims(shape)}]"], f"{dtype}[{_dims(shape)}]"
    )


_GELU_CONSTANTS = {"half": 0.5, "one": 1, "scale": 0.79785, "cubic": 0.044708}


def _gelu_body(type: str, dtype: str, prefix: str = "") -> str:
    lines: list[str] = []
    for name, value in _GELU_CONSTANTS.items():
        lines.append(f"  %{prefix}{name}0 = {dtype}[] constant({value})")
        lines.append(f"  %{prefix}{name} = {type} broadcast(%{prefix}{name}0), dimensions={{}}")
    steps = [
        ("square", "multiply", "p0", "p0"),
        ("cube", "multiply", "square", "p0"),
        ("term", "multiply", "cube", "cubic"),
        ("inner", "add", "p0", "term"),
        ("scaled", "multiply", "inner", "scale"),
        ("tanh", "tanh", "scaled"),
        ("shifted", "add", "tanh", "one"),
        ("gate", "multiply", "shifted", "half"),
        ("result", "multiply", "p0", "gate"),
    ]
    for name, opcode, *operands in steps:
        read = ", ".join(f"%{o if o == 'p0' else prefix + o}" for o in operands)
        root = "ROOT " if name == "result" else ""
        lines.append(f"  {root}%{prefix}{name} = {type} {opcode}({read})")
    return "\n".join(lines)


def _gelu(lax: Any) -> Callable[..., Any]:
    def gelu(p: Any) -> Any:
        c = {name: lax.full_like(p, value) for name, value in _GELU_CONSTANTS.items()}
        inner = lax.add(p, lax.mul(lax.mul(lax.mul(p, p), p), c["cubic"]))
        gate = lax.mul(lax.add(lax.tanh(lax.mul(inner, c["scale"])), c["one"]), c["half"])
        return lax.mul(p, gate)

    return gelu


def _gelu_case(name: str, dtype: str, shape: tuple[int, ...], goal: float) -> Case:
    return Case(f"gelu {dtype} {name}", gelu_text(dtype, shape), _gelu, goal)


_LARGE = (6, 512, 4096)
_SILU = f"bf16[{_dims(_LARGE)}]"

RUN: list[Case] = [
    _gelu_case("12.6 M", "bf16", _LARGE, 0.33),
    Case(
        "x * logistic(y) bf16 12.6 M",
        module(f"  %l = {_SILU} logistic(%p1)\n  ROOT %r = {_SILU} multiply(%p0, %l)", [_SILU, _SILU], _SILU),
        lambda lax: lambda x, y: lax.mul(x, lax.logistic(y)),
        0.7,
    ),
    _gelu_case("64 M", "f32", (64, 1000, 1000), 0.9),
    _gelu_case("256 K", "bf16", (256, 1024), 1.0),
    _gelu_case("256 K", "f32", (256, 1024), 1.0),
    _gelu_case("16 K", "bf16", (16, 1024), 1.0),
    _gelu_case("16 K", "f32", (16, 1024), 1.0),
]


def _binary(name: str, dtype: str, shape: tuple[int, ...]) -> Case:
    type = f"{dtype}[{_dims(shape)}]"
    return Case(name, module(f"  ROOT %r = {type} add(%p0, %p1)", [type, type], type), lambda lax: lax.add)


_F = "f32[4096,4096]"
_SQUARE = (4096, 4096)


def _vector(dimension: int) -> Case:
    """A row (dimension 1) or a column (0) added to each row or column of a matrix."""
    body = f"  %v = {_F} broadcast(%p1), dimensions={{{dimension}}}\n  ROOT %r = {_F} add(%p0, %v)"
    return Case(
        f"add a {'row' if dimension else 'column'} f32 16.8 M",
        module(body, [_F, "f32[4096]"], _F),
        lambda lax: lambda x, v: lax.add(x, lax.broadcast_in_dim(v, _SQUARE, (dimension,))),
    )


def _reduce(dimension: int, shape: tuple[int, int]) -> Case:
    kept = shape[1 - dimension]
    body = (
        f"  %z = f32[] constant(0)\n  ROOT %r = f32[{kept}] reduce(%p0, %z), dimensions={{{dimension}}}, to_apply=add"
    )
    return Case(
        f"sum of f32 {'rows' if dimension else 'columns'} 16.8 M",
        module(body, [f"f32[{_dims(shape)}]"], f"f32[{kept}]"),
        lambda lax: lambda x: lax.reduce_sum(x, (dimension,)),
    )


OTHERS: list[Case] = [
    _binary("add f32 16.8 M", "f32", _SQUARE),
    _binary("add f32 1 M", "f32", (1024, 1024)),
    _binary("add bf16 16.8 M", "bf16", _SQUARE),
    _binary("add bf16 1 M", "bf16", (1024, 1024)),
    _binary("add s8 16.8 M", "s8", _SQUARE),
    _binary("add f16 16.8 M", "f16", _SQUARE),
    Case(
        "convert f32 to bf16 16.8 M",
        module("  ROOT %r = bf16[4096,4096] convert(%p0)", [_F], "bf16[4096,4096]"),
        lambda lax: lambda x: lax.convert_element_type(x, "bfloat16"),
    ),
    Case(
        "convert bf16 to f32 16.8 M",
        module(f"  ROOT %r = {_F} convert(%p0)", ["bf16[4096,4096]"], _F),
        lambda lax: lambda x: lax.convert_element_type(x, "float32"),
    ),
    Case(
        "exp f32 16.8 M",
        module(f"  ROOT %r = {_F} exponential(%p0)", [_F], _F),
        lambda lax: lax.exp,
    ),
    Case(
        "max(x, 0) f32 16.8 M",
        module(
            f"  %z = f32[] constant(0)\n  %zs = {_F} broadcast(%z), dimensions={{}}\n"
            f"  ROOT %r = {_F} maximum(%p0, %zs)",
            [_F],
            _F,
        ),
        lambda lax: lambda x: lax.max(x, lax.full_like(x, 0)),
    ),
    Case(
        "select(x < y, x, y) f32 16.8 M",
        module(
            f"  %c = pred[4096,4096] compare(%p0, %p1), direction=LT\n  ROOT %r = {_F} select(%c, %p0, %p1)",
            [_F, _F],
            _F,
        ),
        lambda lax: lambda x, y: lax.select(lax.lt(x, y), x, y),
    ),
    _vector(1),
    _vector(0),
    Case(
        "reverse f32 16.8 M",
        module(f"  ROOT %r = {_F} reverse(%p0), dimensions={{1}}", [_F], _F),
        lambda lax: lambda x: lax.rev(x, (1,)),
    ),
    Case(
        "every second f32 of 16.8 M",
        module("  ROOT %r = f32[4096,2048] slice(%p0), slice={[0:4096], [0:4096:2]}", [_F], "f32[4096,2048]"),
        lambda lax: lambda x: lax.slice(x, (0, 0), _SQUARE, (1, 2)),
    ),
    Case(
        "pad f32 16.8 M",
        module(
            "  %z = f32[] constant(0)\n  ROOT %r = f32[4098,4100] pad(%p0, %z), padding=1_1x2_2", [_F], "f32[4098,4100]"
        ),
        lambda lax: lambda x: lax.pad(x, lax.full((), 0.0, x.dtype), ((1, 1, 0), (2, 2, 0))),
    ),
    Case(
        "transpose f32 16.8 M",
        module(f"  ROOT %r = {_F} transpose(%p0), dimensions={{1,0}}", [_F], _F),
        lambda lax: lambda x: lax.transpose(x, (1, 0)),
    ),
    Case(
        "transpose bf16 16.8 M",
        module("  ROOT %r = bf16[4096,4096] transpose(%p0), dimensions={1,0}", ["bf16[4096,4096]"], "bf16[4096,4096]"),
        lambda lax: lambda x: lax.transpose(x, (1, 0)),
    ),
    _reduce(1, _SQUARE),
    _reduce(0, _SQUARE),
]

# ---------------------------------------------------------------------------------------------------------- compilation
_UNARY = ("tanh", "exponential", "sign", "sqrt", "negate", "abs", "cosine", "log", "floor", "sine")
_BINARY = ("add", "multiply", "subtract", "maximum", "minimum", "divide")


def many_fusions(count: int, dtypes: tuple[str, ...] = ("f32", "bf16")) -> str:
    """A module of `count` different elementwise fusions of 6 to 14 ops each, one after another."""
    bodies: list[str] = []
    entry: list[str] = []
    results: list[str] = []
    parameters = [f"{d}[{512 + 64 * i},1024]" for i, d in enumerate(dtypes)]
    for i, shape in enumerate(parameters):
        entry.append(f"  %x{i} = {shape} parameter({i})")
    for n in range(count):
        kind = n % len(dtypes)
        shape = parameters[kind]
        lines = [f"  %p{n} = {shape} parameter(0)"]
        value = f"%p{n}"
        ops = 6 + n % 9
        for step in range(ops):
            name = f"%v{n}_{step}"
            root = "ROOT " if step == ops - 1 else ""
            choice = n * 7 + step * 3 + n // 10
            if step % 3 == n % 3:
                lines.append(f"  {root}{name} = {shape} {_UNARY[choice % len(_UNARY)]}({value})")
            else:
                lines.append(f"  {root}{name} = {shape} {_BINARY[choice % len(_BINARY)]}({value}, %p{n})")
            value = name
        bodies.append(f"body{n} {{\n" + "\n".join(lines) + "\n}\n")
        entry.append(f"  %fused{n} = {shape} fusion(%x{kind}), kind=kLoop, calls=body{n}")
        results.append(f"%fused{n}")
    types = ", ".join(parameters[n % len(dtypes)] for n in range(count))
    entry.append(f"  ROOT %t = ({types}) tuple({', '.join(results)})")
    return "HloModule many\n\n" + "\n".join(bodies) + "\nENTRY main {\n" + "\n".join(entry) + "\n}\n"


def chain_text(count: int, dtype: str = "f32") -> str:
    """One fusion of `count` ops, each of the one before and the parameter."""
    type = f"{dtype}[1024,1024]"
    lines: list[str] = []
    value = "%p0"
    for i in range(count):
        root = "ROOT " if i == count - 1 else ""
        opcode = ("add", "multiply", "subtract", "maximum")[i % 4]
        lines.append(f"  {root}%v{i} = {type} {opcode}({value}, %p0)")
        value = f"%v{i}"
    return module("\n".join(lines), [type], type)


def diamond_text(count: int, dtype: str = "f32") -> str:
    """One fusion of `count` ops where each reads the two before it: exponentially many paths, linearly many ops."""
    type = f"{dtype}[1024,1024]"
    lines = [f"  %v0 = {type} negate(%p0)"]
    before, value = "%p0", "%v0"
    for i in range(1, count):
        root = "ROOT " if i == count - 1 else ""
        opcode = ("add", "maximum", "subtract", "minimum")[i % 4]
        lines.append(f"  {root}%v{i} = {type} {opcode}({value}, {before})")
        before, value = value, f"%v{i}"
    return module("\n".join(lines), [type], type)
