"""Texts as people and XLA write them, by class: each is HLO that XLA reads, in a form that our printer never gives.

`TEXTS[class]` are whole modules.  `test_lenient_text.py` reads them, and compares them with jaxlib's own reading.
"""

from __future__ import annotations

__all__ = ["TEXTS"]

ADD = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }\n"
NEGATE = "negated { p = f32[8] parameter(0)  ROOT n = f32[8] negate(p) }\n"
SCALAR = "scalar { p = f32[] parameter(0)  ROOT n = f32[] negate(p) }\n"
LESS = "less { p = f32[] parameter(0)  q = f32[] parameter(1)  ROOT n = pred[] compare(p, q), direction=LT }\n"


def _entry(body: str, before: str = "") -> str:
    return f"HloModule m\n{before}ENTRY e {{\n{body}\n}}\n"


X = "  a = f32[4] parameter(0)\n"
Y = "  a = f32[8] parameter(0)\n"

TEXTS: dict[str, tuple[str, ...]] = {
    "result shape left out": (
        _entry(X + "  b = f32[4] parameter(1)\n  ROOT n = add(a, b)"),
        _entry(X + "  ROOT t = tuple(a, a)"),
        _entry(X + "  t = tuple(a, a)\n  ROOT g = get-tuple-element(t), index=1"),
        _entry(
            "  a = f32[4,8] parameter(0)\n  z = f32[] constant(0)\n"
            "  ROOT r = reduce(a, z), dimensions={1}, to_apply=add",
            ADD,
        ),
        _entry("  a = f32[4,8] parameter(0)\n  ROOT r = transpose(a), dimensions={1,0}"),
        _entry(X + "  b = f32[4] parameter(1)\n  c = compare(a, b), direction=LT\n  ROOT s = select(c, a, b)"),
        _entry(X + "  b = f32[3] parameter(1)\n  ROOT c = concatenate(a, b), dimensions={0}"),
        _entry(Y + "  z = f32[] constant(0)\n  ROOT s = pad(a, z), padding=1_2_1"),
        _entry(Y + "  ROOT s = negate(a)"),
        _entry(
            "  a = f32[8,4] parameter(0)\n  b = f32[4,3] parameter(1)\n"
            "  ROOT s = dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
        ),
        _entry(
            "  a = f32[1,8,8,3] parameter(0)\n  b = f32[3,3,3,4] parameter(1)\n"
            "  ROOT s = convolution(a, b), window={size=3x3}, dim_labels=b01f_01io->b01f"
        ),
        _entry(Y + "  ROOT s = call(a), to_apply=negated", NEGATE),
        _entry(Y + "  ROOT s = sort(a), dimensions={0}, to_apply=less", LESS),
        _entry(Y + "  ROOT s = copy(a)"),
        _entry(Y + "  ROOT s = reverse(a), dimensions={0}"),
        _entry(Y + "  ROOT s = map(a), dimensions={0}, to_apply=scalar", SCALAR),
        _entry(
            "  p = pred[] parameter(0)\n  a = f32[8] parameter(1)\n  ROOT s = conditional(p, a, a), "
            "true_computation=negated, false_computation=negated",
            NEGATE,
        ),
        _entry(
            "  a = f32[8,9] parameter(0)\n  i = s32[3,1] parameter(1)\n  ROOT s = gather(a, i), offset_dims={1}, "
            "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,9}"
        ),
    ),
    "operands in place": (
        _entry("  ROOT b = f32[4] broadcast(f32[] constant(0)), dimensions={}"),
        _entry("  ROOT n = f32[4] negate(f32[4] parameter(0))"),
        _entry(X + "  ROOT n = f32[4] add(a, f32[4] constant({1,2,3,4}))"),
        _entry(X + "  ROOT n = f32[4] add(a, f32[4] negate(a))"),
        _entry(X + "  ROOT n = f32[4] add(a, f32[4] add(a, f32[4] negate(a)))"),
        _entry("  ROOT n = f32[4] add(f32[4] parameter(0), f32[4] parameter(1))"),
        _entry(
            "  a = f32[4,2] parameter(0)\n  ROOT n = f32[4] reduce(a, f32[] constant(0)), dimensions={1}, to_apply=add",
            ADD,
        ),
        _entry(X + "  ROOT n = f32[4] add(a, negate(a))"),
        _entry(X + "  ROOT n = f32[4] add(f32[4] %a, f32[4] multiply(f32[4] a, f32[4] a))"),
        _entry(X + "  ROOT n = (f32[4], f32[]) tuple(a, f32[] constant(3))"),
        _entry(X + "  ROOT n = f32[2] slice(f32[4] negate(a)), slice={[0:2]}"),
        _entry(X + "  negate.anon = f32[4] abs(a)\n  ROOT n = f32[4] add(negate.anon, negate(a))"),
    ),
    "comments": (
        _entry("  a = f32[4] parameter(0), /*x*/ sharding={replicated}\n  ROOT r = f32[4] negate(a)"),
        _entry("  a = f32[4] parameter(0) // c\n  ROOT r = f32[4] negate(a) // d"),
        _entry(X + "  ROOT r = f32[4] negate(/*index=0*/a)"),
        _entry("  a = f32[4] /*x*/ parameter(0)\n  ROOT r = f32[4] negate(a)"),
        _entry("  a = /*x*/ f32[4] parameter(0)\n  ROOT r = f32[4] negate(a)"),
        _entry("  a /*x*/ = f32[4] parameter(0)\n  ROOT r = f32[4] negate(a)"),
        _entry(X + "  ROOT /*r*/ r = f32[4] negate(a)"),
        _entry("  a = f32[4] parameter(/*n*/0)\n  ROOT r = f32[4] negate(a)"),
        "/* top */ HloModule m /* x */\n// y\nENTRY /*z*/ e { // q\n ROOT a = f32[4] parameter(0)\n} // end",
        _entry("  a = f32[4,4] parameter(0)\n  ROOT r = f32[4,4] transpose(a), // c\n dimensions={1,0}"),
        _entry("  a = f32[4,4] parameter(0)\n  ROOT r = f32[4,4] transpose(a), dimensions=/*d*/{1,/*e*/0}"),
    ),
    "signatures": tuple(
        f"HloModule m\nENTRY e {signature} {{\n{X}  ROOT r = f32[4] negate(a)\n}}\n"
        for signature in (
            *(
                "(a: f32[4]) -> f32[4]",
                "(x: f32[4]) -> f32[4]",
                "(x: f32[5]) -> f32[4]",
                "(x: f32[5], y: f32[]) -> f32[4]",
            ),
            *(
                "(a f32[4]) -> f32[4]",
                "(a f32[4], b f32[4]) -> f32[4]",
                "() -> f32[4]",
                "(a: (f32[4], s32[])) -> f32[4]",
            ),
            *("(%a f32[4]) -> f32[4]", "(a: f32[4]) -> f32[4]{0}"),
        )
    ),
    "strings and attributes": (
        _entry(X + '  ROOT r = f32[4] custom-call(a), custom_call_target="x\ny"'),
        _entry(X + '  ROOT r = f32[4] custom-call(a), custom_call_target="x", backend_config="{\n\\"a\\": 1\n}"'),
        _entry('  a = f32[4] parameter(0), metadata={op_name="p\nq" source_file="f.py"}\n  ROOT r = f32[4] negate(a)'),
        *(
            _entry(
                "  a = f32[4,8] parameter(0)\n  b = f32[8,3] parameter(1)\n  ROOT s = f32[4,3] dot(a, b), "
                f"lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, operand_precision={{{words}}}"
            )
            for words in ("HIGH,HIGH", "HIGH,DEFAULT", "highest,highest")
        ),
        _entry(
            "  a = f32[1,8,8,3] parameter(0)\n  b = f32[3,3,3,4] parameter(1)\n  ROOT s = f32[1,6,6,4] "
            "convolution(a, b), window={size=3x3}, dim_labels=b01f_01io->b01f, convolution_kind=fprop"
        ),
    ),
    "groups of devices": tuple(
        _entry(
            X + f"  ROOT r = f32[4] all-reduce(a), to_apply=add, replica_groups={groups}, channel_id=1, "
            "use_global_device_ids=true",
            ADD,
        )
        for groups in (
            *(
                "mesh['a'=2,'b'=4] {'b'}",
                "mesh['a'=2,'b'=4]{'b'}",
                "mesh['a'=2,'b'=4] {'b':(1)2}",
                "mesh['a'=8] {'a':(2)2}",
            ),
            *("mesh['a'=2,'b'=4] {'a','b':(2)2}", "mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'b'}"),
            *(
                "mesh['a'=2,'b'=4], device_ids=(7,6,5,4,3,2,1,0) {'b'}",
                "[2,4]<=[8]",
                "[2,4]<=[4,2]T(1,0)",
                "{{0,1},{2,3}}",
            ),
        )
    ),
    "constants": tuple(
        _entry(f"  ROOT c = {constant}")
        for constant in (
            *("f32[2,2] constant({{1,2} {3,4}})", "f32[2,2] constant({ {1 2} {3 4} })", "f32[3] constant({1 2 3})"),
            *("f32[2]{0} constant({1 /*i*/, 2})", "pred[2] constant({1, 0})", "s32[2,0] constant({{},{}})"),
            *("c64[2] constant({(1, 2), (3,4)})", "f32[0] constant({})", "f32[] constant(nan(0x123))"),
            *("(f32[2], s32[]) constant(({1 2}, 3))",),
        )
    ),
    "values left out": tuple(
        _entry(f"  ROOT c = {constant}")
        for constant in (
            *("f32[100] constant({...})", "f32[2,100] constant({...})", "(f32[100], s32[]) constant(({...}, 1))"),
            *(
                "(f32[100], s32[10]) constant(({...}, {...}))",
                "pred[1000] constant({...})",
                "f32[10] constant({1, ...})",
            ),
            *(
                "bf16[7,5] constant({...})",
                "s4[9] constant({...})",
                "c64[12] constant({...})",
                "f32[11] constant({ ... })",
            ),
        )
    ),
    "what the verifier takes": (
        _entry(X + "  ROOT r = f32[4] map(a), dimensions={}, to_apply=scalar", SCALAR),
        _entry("  a = bf16[4] parameter(0)\n  ROOT r = bf16[4] all-reduce(a), to_apply=add", ADD),
        _entry("  a = c64[0] parameter(0)\n  ROOT r = c64[0] fft(a), fft_type=FFT, fft_length={0}"),
        _entry(
            "  a = s8[4,8] parameter(0)\n  b = s8[8,3] parameter(1)\n  ROOT s = bf16[4,3] dot(a, b), "
            "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
        ),
        _entry(
            "  a = f32[4]{0} parameter(0)\n  t = token[] after-all()\n  ROOT r = (f32[8]{0}, token[]) "
            "all-gather(a, t), dimensions={0}, replica_groups={{0,1}}"
        ),
    ),
}
