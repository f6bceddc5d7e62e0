"""cholesky, triangular-solve, and the factorisations that custom calls ask LAPACK for: in float64 or complex128.

In: arrays of matrices [..., m, n].  Out: arrays of float64 or complex128, which the caller rounds once.  Conventions
(pivots, reflectors, what stays in the other triangle, `info`) are LAPACK's.  All matrices of a batch run at once.
"""

from __future__ import annotations

import numpy as np

from warpsmith.arrays import Array

__all__ = ["adjoint", "cholesky", "householder_product", "lu", "qr_reflectors", "solve_triangular"]


def adjoint(a: Array) -> Array:
    """The conjugate transposes."""
    return np.conj(np.swapaxes(a, -1, -2))


def cholesky(a: Array) -> tuple[Array, Array]:
    """L with L L* = A, from A's lower triangle, zeros above; and the order of the first minor that isn't positive (0:
    all are).  Columns from there on are zero."""
    size = a.shape[-1]
    factor = np.zeros_like(a)
    info = np.zeros(a.shape[:-2], np.int32)
    for j in range(size):
        row = factor[..., j, :j]
        pivot = np.real(a[..., j, j]) - np.sum(np.real(row * np.conj(row)), axis=-1)
        bad = ~(pivot > 0) & (info == 0)
        info = np.where(bad, np.int32(j + 1), info)
        root = np.sqrt(np.where(info == 0, pivot, 1.0))
        below = a[..., j + 1 :, j] - np.einsum("...ik,...k->...i", factor[..., j + 1 :, :j], np.conj(row))
        good = info == 0
        factor[..., j, j] = np.where(good, root, 0.0)
        factor[..., j + 1 :, j] = np.where(good[..., None], below / root[..., None], 0.0)
    return factor, info


def solve_triangular(a: Array, b: Array, *, lower: bool, unit: bool) -> Array:
    """x with A x = b, by substitution; the other triangle of A (and its diagonal, if `unit`) isn't read."""
    size = a.shape[-1]
    x = np.array(np.broadcast_to(b, (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])))
    for i in range(size) if lower else reversed(range(size)):
        done = slice(0, i) if lower else slice(i + 1, size)
        x[..., i, :] -= np.einsum("...k,...kn->...n", a[..., i, done], x[..., done, :])
        if not unit:
            x[..., i, :] /= a[..., i, i, None]
    return x


def lu(a: Array) -> tuple[Array, Array, Array]:
    """L (below the diagonal, ones on it) and U in one matrix, the row that each step swapped with (from 1), info."""
    a = np.array(a)
    rows, columns = a.shape[-2:]
    batch = a.shape[:-2]
    steps = min(rows, columns)
    pivots = np.zeros((*batch, steps), np.int32)
    info = np.zeros(batch, np.int32)
    for j in range(steps):
        column = a[..., j:, j]
        size = np.abs(np.real(column)) + np.abs(np.imag(column))  # LAPACK's own measure of complex numbers
        chosen = j + np.argmax(size, axis=-1)
        pivots[..., j] = chosen + 1
        here, there = a[..., j, :].copy(), np.take_along_axis(a, chosen[..., None, None], axis=-2)[..., 0, :]
        np.put_along_axis(a, np.broadcast_to(chosen[..., None, None], (*batch, 1, columns)), here[..., None, :], -2)
        a[..., j, :] = there
        pivot = a[..., j, j]
        zero = pivot == 0
        info = np.where(zero & (info == 0), np.int32(j + 1), info)
        factors = a[..., j + 1 :, j] / np.where(zero, 1.0, pivot)[..., None]
        a[..., j + 1 :, j] = factors
        a[..., j + 1 :, j + 1 :] -= factors[..., :, None] * a[..., None, j, j + 1 :]
    return a, pivots, info


def qr_reflectors(a: Array) -> tuple[Array, Array]:
    """R on and above the diagonal, Householder vectors (their leading 1 left out) below it, and their factors tau."""
    a = np.array(a)
    rows, columns = a.shape[-2:]
    steps = min(rows, columns)
    taus = np.zeros((*a.shape[:-2], steps), a.dtype)
    for j in range(steps):
        alpha, rest = a[..., j, j].copy(), a[..., j + 1 :, j].copy()
        tail = np.sum(np.abs(rest) ** 2, axis=-1)
        none = (tail == 0) & (np.imag(alpha) == 0)
        norm = np.sqrt(np.abs(alpha) ** 2 + tail)
        beta = np.where(none, np.real(alpha), -np.copysign(norm, np.real(alpha)))
        tau = np.where(none, 0.0, (beta - alpha) / np.where(none, 1.0, beta))
        vector = rest / np.where(none, 1.0, alpha - beta)[..., None]
        vector = np.where(none[..., None], 0.0, vector)
        whole = np.concatenate([np.ones_like(vector[..., :1]) if rows > j + 1 else _one(alpha), vector], axis=-1)
        _reflect(a[..., j:, j + 1 :], whole, np.conj(tau))
        a[..., j, j], a[..., j + 1 :, j], taus[..., j] = beta, vector, tau
    return a, taus


def _one(alpha: Array) -> Array:
    return np.ones((*alpha.shape, 1), alpha.dtype)


def _reflect(block: Array, vector: Array, tau: Array) -> None:
    """block -= tau v (v* block), in place."""
    product = np.einsum("...i,...ij->...j", np.conj(vector), block)
    block -= tau[..., None, None] * vector[..., :, None] * product[..., None, :]


def householder_product(a: Array, taus: Array) -> Array:
    """The first columns of H_1 H_2 ... H_k, from `qr_reflectors`; of the dims of `a`."""
    rows, columns = a.shape[-2:]
    q = np.array(np.broadcast_to(np.eye(rows, columns, dtype=a.dtype), a.shape))
    for j in reversed(range(taus.shape[-1])):
        whole = np.concatenate([_one(taus[..., j]), a[..., j + 1 :, j]], axis=-1)
        _reflect(q[..., j:, :], whole, taus[..., j])
    return q
