"""Programs in JAX as people write them: what they lower to is what real HLO looks like.

`PROGRAMS` is read by `dump` in a process of its own; nothing else imports this module, since it needs jax.  Each row
names a function, its arguments (made from a seeded generator), and what it shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy
import numpy as np
from jax import lax

Rng = np.random.Generator
Tree = Any
"""Arrays in dicts, lists and tuples."""


@dataclass(frozen=True)
class Program:
    """`function(*arguments(rng))`; `donated` arguments give their memory; `calls` are its custom calls on the CPU."""

    name: str
    function: Callable[..., Tree]
    arguments: Callable[[Rng], tuple[Tree, ...]]
    donated: tuple[int, ...] = ()
    calls: tuple[str, ...] = ()
    x64: bool = False


def f32(rng: Rng, *shape: int, scale: float = 1.0) -> Any:
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def ints(rng: Rng, high: int, *shape: int) -> Any:
    return rng.integers(0, high, shape).astype(np.int32)


KEY = np.array([7, 42], np.uint32)


# Training steps


def mlp_loss(params: Tree, x: Any, y: Any) -> Any:
    for weight, bias in params[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    weight, bias = params[-1]
    return jnp.mean((x @ weight + bias - y) ** 2)


def mlp_sgd_step(params: Tree, x: Any, y: Any) -> Tree:
    loss, gradient = jax.value_and_grad(mlp_loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient), loss


def mlp_arguments(rng: Rng) -> tuple[Tree, ...]:
    sizes = (8, 16, 16, 4)
    params = [(f32(rng, a, b, scale=0.3), f32(rng, b)) for a, b in pairwise(sizes)]
    return params, f32(rng, 32, 8), f32(rng, 32, 4)


def layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * gain + bias


def attention(x: Any, weights: Tree, heads: int) -> Any:
    batch, time, width = x.shape
    q, k, v = (jnp.reshape(x @ weights[name], (batch, time, heads, width // heads)) for name in ("q", "k", "v"))
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / np.sqrt(width // heads)
    scores = jnp.where(jnp.tril(jnp.ones((time, time), bool)), scores, -1e9)
    mixed = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores, axis=-1), v)
    return mixed.reshape(batch, time, width) @ weights["o"]


def transformer_loss(params: Tree, tokens: Any) -> Any:
    x = params["embed"][tokens[:, :-1]] + params["position"]
    for block in params["blocks"]:
        x = x + attention(layer_norm(x, *block["ln1"]), block, heads=2)
        x = x + jax.nn.gelu(layer_norm(x, *block["ln2"]) @ block["up"]) @ block["down"]
    logits = layer_norm(x, *params["ln"]) @ params["embed"].T
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], axis=-1)
    return -jnp.mean(chosen)


def adam_step(params: Tree, moments: Tree, step: Any, tokens: Any) -> Tree:
    loss, gradient = jax.value_and_grad(transformer_loss)(params, tokens)
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], gradient)
    square = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, moments[1], gradient)
    rate = 1e-3 * jnp.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    params = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), params, mean, square)
    return params, (mean, square), step + 1, loss


def transformer_arguments(rng: Rng) -> tuple[Tree, ...]:
    vocabulary, time, width = 32, 8, 16
    norm = (np.ones(width, np.float32), np.zeros(width, np.float32))
    block = {name: f32(rng, width, width, scale=0.2) for name in "qkvo"}
    block |= {"ln1": norm, "ln2": norm, "up": f32(rng, width, 32, scale=0.2), "down": f32(rng, 32, width, scale=0.2)}
    params = {
        "embed": f32(rng, vocabulary, width),
        "position": f32(rng, time, width),
        "blocks": [block, jax.tree.map(np.copy, block)],
        "ln": norm,
    }
    zeros = jax.tree.map(np.zeros_like, params)
    return params, (zeros, zeros), np.float32(1), ints(rng, vocabulary, 4, time + 1)


def conv_loss(params: Tree, images: Any, labels: Any) -> Any:
    dims = ("NHWC", "HWIO", "NHWC")
    x = lax.conv_general_dilated(images, params["c1"], (1, 1), "SAME", dimension_numbers=dims)
    x = lax.reduce_window(jax.nn.relu(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = lax.conv_general_dilated(x, params["c2"], (2, 2), "VALID", dimension_numbers=dims)
    x = jax.nn.relu(x).mean((1, 2)) @ params["dense"]
    return -jnp.mean(jnp.sum(jax.nn.one_hot(labels, 10) * jax.nn.log_softmax(x), -1))


def conv_arguments(rng: Rng) -> tuple[Tree, ...]:
    params = {"c1": f32(rng, 3, 3, 3, 8), "c2": f32(rng, 3, 3, 8, 16), "dense": f32(rng, 16, 10)}
    return params, f32(rng, 2, 16, 16, 3), ints(rng, 10, 2)


def rematerialised_loss(weights: Any, x: Any) -> Any:
    @jax.checkpoint
    def layer(x: Any, weight: Any) -> Any:
        return jnp.tanh(x @ weight)

    for weight in weights:
        x = layer(x, weight)
    return jnp.sum(x**2)


# Pieces of models


def activations(x: Any) -> Tree:
    functions = (jax.nn.relu6, jax.nn.silu, jax.nn.softplus, jax.nn.elu, jax.nn.mish, jax.nn.hard_swish)
    return [jax.nn.gelu(x, approximate=False), jax.nn.gelu(x), *(function(x) for function in functions)]


def batch_norm(x: Any, gain: Any, bias: Any, running: Any) -> Tree:
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    y = (x - mean) / jnp.sqrt(variance + 1e-3) * gain + bias
    return y, 0.9 * running + 0.1 * jnp.stack([mean, variance])


def attention_bf16(x: Any, weights: Tree) -> Any:
    return attention(x.astype(jnp.bfloat16), jax.tree.map(lambda w: w.astype(jnp.bfloat16), weights), heads=4)


def cache_update(cache: Any, key: Any, value: Any, position: Any) -> Tree:
    cache = lax.dynamic_update_slice(cache, jnp.stack([key, value])[:, :, None], (0, 0, position, 0))
    visible = jnp.arange(cache.shape[2]) <= position
    scores = jnp.where(visible, jnp.einsum("bd,btd->bt", key, cache[0]), -jnp.inf)
    return cache, jnp.einsum("bt,btd->bd", jax.nn.softmax(scores), cache[1])


def gru(params: Tree, sequence: Any, state: Any) -> Tree:
    def cell(state: Any, x: Any) -> tuple[Any, Any]:
        z, r = jnp.split(jax.nn.sigmoid(jnp.concatenate([x, state], -1) @ params["gates"]), 2, -1)
        candidate = jnp.tanh(jnp.concatenate([x, r * state], -1) @ params["candidate"])
        state = (1 - z) * state + z * candidate
        return state, state

    return lax.scan(cell, state, sequence)


def mixture_of_experts(x: Any, gate: Any, experts: Any) -> Any:
    weight, chosen = lax.top_k(jax.nn.softmax(x @ gate), 2)
    dispatch = jnp.sum(jax.nn.one_hot(chosen, gate.shape[1]) * weight[..., None], axis=1)
    return jnp.einsum("te,tef->tf", dispatch, jnp.einsum("td,edf->tef", x, experts))


def depthwise(x: Any, kernel: Any, dilated: Any) -> Tree:
    dims = ("NCHW", "OIHW", "NCHW")
    a = lax.conv_general_dilated(x, kernel, (1, 1), [(1, 1), (2, 0)], feature_group_count=4, dimension_numbers=dims)
    b = lax.conv_general_dilated(x, dilated, (1, 2), [(0, 0), (1, 0)], (2, 1), (1, 2), dimension_numbers=dims)
    return a, b, lax.conv_transpose(x, dilated, (2, 2), "SAME", dimension_numbers=dims)


def pools(x: Any) -> Tree:
    window = ((1, 3, 3, 1), (1, 2, 1, 1))
    return (
        lax.reduce_window(x, 0.0, lax.add, *window, "SAME"),
        lax.reduce_window(x, jnp.inf, lax.min, *window, [(0, 0), (1, 2), (0, 0), (0, 0)]),
        lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 1, 1, 1), "VALID", window_dilation=(1, 2, 1, 1)),
    )


def quantised(x: Any, weights: Any, scale: Any) -> Tree:
    limit = jnp.max(jnp.abs(x), axis=1, keepdims=True) / 127
    small = jnp.round(x / limit).astype(jnp.int8)
    product = lax.dot(small, weights, preferred_element_type=jnp.int32)
    eighth = x.astype(jnp.float8_e4m3fn).astype(jnp.float32)
    return product.astype(jnp.float32) * limit * scale, eighth, x.astype(jnp.int4).astype(jnp.int32)


# Indexing, sorting, segments


def scatters(x: Any, rows: Any, values: Any) -> Tree:
    clipped = x.at[rows].set(values, mode="clip", unique_indices=False)
    return x.at[rows].add(values), clipped, x.at[rows, 1].max(values[:, 0]), x.at[:, rows % 3].multiply(0.5)


def gathers(x: Any, rows: Any) -> Tree:
    along = jnp.take_along_axis(x, rows[:, None] % x.shape[1], axis=1)
    return (
        x[rows],
        jnp.take(x, rows, axis=1, mode="fill"),
        along,
        x[rows, rows % 3],
        jax.vmap(lambda r, i: r[i])(x, rows[:6]),
    )


def sorts(x: Any, keys: Any) -> Tree:
    by_two = lax.sort((keys, x[:, 0], jnp.arange(keys.shape[0])), num_keys=2, is_stable=True)
    return jnp.sort(x, axis=0), jnp.argsort(-x, axis=1), by_two, jnp.median(x, axis=0)


def segments(values: Any, ids: Any) -> Tree:
    one = partial(jax.ops.segment_sum, num_segments=5)
    return one(values, ids), jax.ops.segment_max(values, ids, num_segments=5), one(jnp.ones_like(ids), ids)


def histogram(x: Any, edges: Any) -> Tree:
    return jnp.histogram(x, bins=edges)[0], jnp.bincount(x.astype(jnp.int32) % 7, length=7), jnp.searchsorted(edges, x)


def dynamic_slices(x: Any, start: Any, update: Any) -> Tree:
    y = lax.dynamic_update_slice_in_dim(x, update, start + 1, axis=0)
    return (
        lax.dynamic_slice(x, (start, start * 2), (2, 3)),
        y,
        jnp.roll(x, start, axis=1),
        lax.dynamic_index_in_dim(x, start),
    )


def cumulative(x: Any) -> Tree:
    return jnp.cumsum(x, axis=1), jnp.cumprod(x, axis=0), lax.cummax(x, axis=1, reverse=True), lax.cumlogsumexp(x)


def parallel_scan(a: Any, b: Any) -> Any:
    return lax.associative_scan(lambda left, right: (left[0] * right[0], right[0] * left[1] + right[1]), (a, b))[1]


def extremes(x: Any) -> Tree:
    y = jnp.where(x > 1.5, jnp.nan, x)
    return jnp.argmax(y, 1), jnp.argmin(x, 0), jnp.nanmax(y), jnp.nan_to_num(y), jnp.isnan(y).any(), jnp.std(x)


def pads(x: Any) -> Tree:
    return lax.pad(x, 0.5, [(1, -1, 1), (0, 2, 0)]), jnp.flip(x, (0, 1)), jnp.tile(x, (2, 2)), x[::-2, 1::2]


# Control flow


def collatz(n: Any) -> Tree:
    def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
        n, count = state
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), count + 1

    return lax.while_loop(lambda state: state[0] != 1, step, (n, jnp.int32(0)))


def branches(x: Any, which: Any) -> Tree:
    functions = [jnp.sin, lambda a: a * a, lambda a: -a, jnp.zeros_like]
    a = lax.switch(which, functions, x)
    return a, lax.cond(jnp.sum(x) > 0, lambda t: (t + 1, t), lambda t: (t, t - 1), x)


def power_iteration(a: Any, v: Any) -> Any:
    def step(_: Any, v: Any) -> Any:
        v = a @ v
        return v / jnp.linalg.norm(v)

    v = lax.fori_loop(0, 20, step, v)
    return v @ a @ v


def k_means(points: Any, centres: Any) -> Tree:
    distance = jnp.sum((points[:, None] - centres) ** 2, -1)
    nearest = jnp.argmin(distance, 1)
    count = jax.ops.segment_sum(jnp.ones(points.shape[0]), nearest, centres.shape[0])
    return jax.ops.segment_sum(points, nearest, centres.shape[0]) / jnp.maximum(count, 1)[:, None], nearest


def newton(x: Any) -> Tree:
    def rosenbrock(x: Any) -> Any:
        return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    return jax.hessian(rosenbrock)(x), jax.jacfwd(jnp.tanh)(x)


# Random numbers, bits, complex numbers


def randoms(data: Any) -> Tree:
    a, b, c, d = jax.random.split(jax.random.wrap_key_data(data), 4)
    kept = jax.random.bernoulli(d, 0.8, (4, 4))
    return (
        jax.random.normal(a, (4, 8)),
        jax.random.uniform(b, (5,), minval=-1),
        jax.random.randint(c, (6,), 0, 100),
        jnp.where(kept, 1 / 0.8, 0.0),
        jax.random.categorical(a, jnp.zeros((3, 4))),
        jax.random.permutation(b, 8),
    )


def bits(x: Any, y: Any) -> Tree:
    exponent = lax.shift_right_logical(lax.bitcast_convert_type(y, jnp.uint32), jnp.uint32(23)) & 0xFF
    return (
        lax.population_count(x),
        lax.clz(x),
        (x << 3) ^ ~x,
        x // 7 % 5,
        exponent,
        lax.bitcast_convert_type(y, jnp.uint8),
    )


def complexes(x: Any, y: Any) -> Tree:
    z = lax.complex(x, y)
    return jnp.abs(z), jnp.angle(z), jnp.exp(z) * jnp.conj(z), jnp.real(z @ z.T)


def spectra(x: Any) -> Tree:
    frequency = jnp.fft.rfft(x)
    return jnp.fft.irfft(frequency * jnp.arange(frequency.shape[-1]), n=x.shape[-1]), jnp.fft.fft2(x).real


def special(x: Any) -> Tree:
    return (
        jax.scipy.special.erf(x),
        jax.scipy.special.gammaln(x + 3),
        jnp.sinh(x),
        jnp.arctan2(x, x + 1),
        jnp.cbrt(x),
        x**3,
    )


# Linear algebra


def einsums(a: Any, b: Any, c: Any) -> Tree:
    return jnp.einsum("bij,bjk->bik", a, b), jnp.einsum("bij,bjk,k->ib", a, b, c), jnp.tensordot(a, b, ((0, 2), (0, 1)))


def matrix_functions(a: Any) -> Tree:
    x = a / jnp.linalg.norm(a)
    for _ in range(3):
        x = 1.5 * x - 0.5 * x @ x.T @ x
    return x, jnp.linalg.matrix_power(a, 5), jnp.trace(a), jnp.kron(a[:2, :2], a)


def cholesky_solve(a: Any, b: Any) -> Any:
    return jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(a @ a.T + 4 * jnp.eye(4)), True), b)


def resize(x: Any) -> Any:
    return jax.image.resize(x, (1, 12, 10, 3), "bilinear")


def doubles(x: Any, y: Any) -> Tree:
    return jnp.cumsum(x), jnp.log1p(x) @ y, jnp.argsort(y), (x * 1e6).astype(jnp.int64) // 3


def square(rng: Rng) -> tuple[Tree, ...]:
    return f32(rng, 4, 4), f32(rng, 4, 2)


def one_square(rng: Rng) -> tuple[Tree, ...]:
    return (f32(rng, 4, 4),)


def vector(n: int) -> Callable[[Rng], tuple[Tree, ...]]:
    return lambda rng: (f32(rng, n),)


def matrix(*shape: int) -> Callable[[Rng], tuple[Tree, ...]]:
    return lambda rng: (f32(rng, *shape),)


PROGRAMS: tuple[Program, ...] = (
    Program("mlp_sgd_step", mlp_sgd_step, mlp_arguments, donated=(0,)),
    Program("transformer_adam_step", adam_step, transformer_arguments, donated=(0, 1)),
    Program("conv_net_gradient", jax.grad(conv_loss), conv_arguments),
    Program("rematerialised_gradient", jax.grad(rematerialised_loss), lambda r: (f32(r, 3, 8, 8), f32(r, 4, 8))),
    Program("activations", activations, vector(33)),
    Program("layer_norm", layer_norm, lambda r: (f32(r, 6, 32), f32(r, 32), f32(r, 32))),
    Program("batch_norm", batch_norm, lambda r: (f32(r, 2, 5, 5, 4), f32(r, 4), f32(r, 4), f32(r, 2, 4)), donated=(3,)),
    Program("attention_bf16", attention_bf16, lambda r: (f32(r, 2, 8, 16), {n: f32(r, 16, 16) for n in "qkvo"})),
    Program(
        *("cache_update", cache_update),
        lambda r: (f32(r, 2, 3, 8, 4), f32(r, 3, 4), f32(r, 3, 4), np.int32(5)),
        donated=(0,),
    ),
    Program(
        *("gru_scan", gru),
        lambda r: ({"gates": f32(r, 12, 16), "candidate": f32(r, 12, 8)}, f32(r, 6, 3, 4), f32(r, 3, 8)),
    ),
    Program("mixture_of_experts", mixture_of_experts, lambda r: (f32(r, 6, 8), f32(r, 8, 4), f32(r, 4, 8, 8))),
    Program("depthwise", depthwise, lambda r: (f32(r, 1, 4, 9, 8), f32(r, 8, 1, 3, 3), f32(r, 2, 4, 2, 3))),
    Program("pools", pools, matrix(1, 7, 6, 2)),
    Program("quantised", quantised, lambda r: (f32(r, 4, 16), ints(r, 9, 16, 8).astype(np.int8), f32(r, 8))),
    Program("scatters", scatters, lambda r: (f32(r, 6, 3), ints(r, 8, 5), f32(r, 5, 3))),
    Program("gathers", gathers, lambda r: (f32(r, 6, 6), ints(r, 8, 6))),
    Program("sorts", sorts, lambda r: (f32(r, 9, 4), ints(r, 3, 9))),
    Program("segments", segments, lambda r: (f32(r, 12), ints(r, 5, 12))),
    Program("histogram", histogram, lambda r: (f32(r, 40, scale=3), np.linspace(-5, 5, 9).astype(np.float32))),
    Program("top_k", partial(lax.top_k, k=3), matrix(4, 10)),
    Program("dynamic_slices", dynamic_slices, lambda r: (f32(r, 6, 8), np.int32(2), f32(r, 2, 8))),
    Program("cumulative", cumulative, matrix(5, 7)),
    Program("parallel_scan", parallel_scan, lambda r: (f32(r, 13), f32(r, 13))),
    Program("extremes", extremes, matrix(6, 5)),
    Program("pads", pads, matrix(5, 6)),
    Program("collatz", collatz, lambda r: (np.int32(27),)),
    Program("branches", branches, lambda r: (f32(r, 6), np.int32(1))),
    Program("power_iteration", power_iteration, lambda r: (f32(r, 8, 8), f32(r, 8))),
    Program("k_means", k_means, lambda r: (f32(r, 20, 2), f32(r, 3, 2))),
    Program("newton", newton, vector(5)),
    Program("randoms", randoms, lambda r: (KEY,)),
    Program("bits", bits, lambda r: (r.integers(0, 2**32, 9, dtype=np.uint32), f32(r, 9))),
    Program("complexes", complexes, lambda r: (f32(r, 3, 4), f32(r, 3, 4))),
    Program("spectra", spectra, matrix(4, 16)),
    Program("special", special, vector(17)),
    Program("einsums", einsums, lambda r: (f32(r, 3, 4, 5), f32(r, 3, 5, 6), f32(r, 6))),
    Program("matrix_functions", matrix_functions, one_square),
    Program("resize", resize, matrix(1, 6, 5, 3)),
    Program("cholesky_solve", cholesky_solve, square, calls=("lapack_spotrf_ffi", "lapack_strsm_ffi")),
    Program("lu_solve", jnp.linalg.solve, square, calls=("lapack_sgetrf_ffi", "lapack_strsm_ffi")),
    Program("qr", jnp.linalg.qr, one_square, calls=("lapack_sgeqrf_ffi", "lapack_sorgqr_ffi")),
    Program("eigh", jnp.linalg.eigh, one_square, calls=("lapack_ssyevd_ffi",)),
    Program("doubles", doubles, lambda r: (r.random(6), r.random((6, 3))), x64=True),
)
