"""Device functions that generated code calls, and the headers it includes.  A file gets those that it uses."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["preamble"]

_HEADERS = {"header bf16": "cuda_bf16.h", "header f16": "cuda_fp16.h"}

_VEC = """\
// N values that are moved as one.
template <typename T, int N>
struct alignas(N * sizeof(T)) Vec {
  T lane[N];
  __device__ T& operator[](int i) { return lane[i]; }
  __device__ const T& operator[](int i) const { return lane[i]; }
};
"""
_EXTREME = """\
// The {word} of a and b; NaN if either is.
__device__ __forceinline__ float {name}(float a, float b) {{
  float result;
  asm("{short}.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}}
"""
_EXTREME_F64 = """\
// The {word} of a and b; NaN if either is.
__device__ __forceinline__ double {name}(double a, double b) {{
  return isnan(a) || isnan(b) ? a + b : f{short}(a, b);
}}
"""
_LOAD_MATRIX = """\
// Loads {count} of 16-bit elements{how}; each lane gives the address of one row.
template <typename T>
__device__ __forceinline__ void {name}(T* tile, const T* row) {{
  unsigned* x = reinterpret_cast<unsigned*>(tile);
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile(
      "{operation} {{{registers}}}, [%{tiles}];"
      : {operands}
      : "r"(address)
      : "memory");
}}
"""
_STORE_MATRIX = """\
// Stores {count} of 16-bit elements{how}; each lane gives the address of one row.
template <typename T>
__device__ __forceinline__ void {name}(T* row, const T* tile) {{
  const unsigned* x = reinterpret_cast<const unsigned*>(tile);
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile(
      "{operation} [%{tiles}], {{{registers}}};" ::{operands}, "r"(address)
      : "memory");
}}
"""
_MMA = """\
// c += a * b for one m16n8k16 tile of a warp: a lane has 4 elements of c, 8 of a, 4 of b.
__device__ __forceinline__ void mma_m16n8k16_{type}(float* c, const {element}* a, const {element}* b) {{
  const unsigned* x = reinterpret_cast<const unsigned*>(a);
  const unsigned* y = reinterpret_cast<const unsigned*>(b);
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.{type}.{type}.f32 "
      "{{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
}}
"""
_BYTE_ATOMIC = """\
// {what} of one byte, by the word that it lies in.
__device__ __forceinline__ void atomic_{name}_byte(uint8_t* address, unsigned value) {{
  const auto place = reinterpret_cast<uintptr_t>(address);
  unsigned* word = reinterpret_cast<unsigned*>(place & ~uintptr_t(3));
  const unsigned shift = unsigned(place & 3) * 8;
  {call};
}}
"""

_FUNCTIONS: dict[str, str] = {
    "Vec": _VEC,
    "bit_cast": """\
// The bits of a value as another type of its size.
template <typename To, typename From>
__device__ __forceinline__ To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "sizes differ");
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}
""",
    "load_vec": """\
// N values one after another, where they aren't aligned to be moved as one.
template <typename V, typename T>
__device__ __forceinline__ V load_vec(const T* from) {
  V to;
#pragma unroll
  for (int i = 0; i < int(sizeof(V) / sizeof(T)); ++i) to[i] = from[i];
  return to;
}
""",
    "store_vec": """\
// N values one after another, where they aren't aligned to be moved as one.
template <typename T, typename V>
__device__ __forceinline__ void store_vec(T* to, const V& from) {
#pragma unroll
  for (int i = 0; i < int(sizeof(V) / sizeof(T)); ++i) to[i] = from[i];
}
""",
    "sign_extend": """\
// The low N bits as a number in two's complement.
template <int N>
__device__ __forceinline__ int sign_extend(unsigned value) {
  return int(value << (32 - N)) >> (32 - N);
}
""",
    "ceil_div": """\
// a / b, rounded up.
template <typename T>
__device__ __forceinline__ T ceil_div(T a, T b) {
  return a / b + (a % b != 0);
}
""",
    "floor_div": """\
// a / b, rounded down.
template <typename T>
__device__ __forceinline__ T floor_div(T a, T b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
""",
    **{
        name: _EXTREME.format(name=name, word=word, short=name[:3])
        for name, word in (("maximum", "larger"), ("minimum", "smaller"))
    },
    **{
        f"{name}_f64": _EXTREME_F64.format(name=name, word=word, short=name[:3])
        for name, word in (("maximum", "larger"), ("minimum", "smaller"))
    },
    "compare_exchange": """\
// Stores `desired` if `expected` is there, bit for bit; else `expected` becomes what is there.
template <typename T>
__device__ __forceinline__ bool compare_exchange(T* address, T& expected, std::common_type_t<T> desired) {
  if constexpr (sizeof(T) == 1) {
    const auto place = reinterpret_cast<uintptr_t>(address);
    unsigned* word = reinterpret_cast<unsigned*>(place & ~uintptr_t(3));
    const unsigned shift = unsigned(place & 3) * 8;
    const unsigned mine = bit_cast<uint8_t>(expected);
    unsigned seen = *reinterpret_cast<volatile unsigned*>(word), assumed;
    do {
      assumed = seen;
      if ((assumed >> shift & 255u) != mine) break;
      const unsigned changed = (assumed & ~(255u << shift)) | (unsigned(bit_cast<uint8_t>(T(desired))) << shift);
      seen = atomicCAS(word, assumed, changed);
    } while (seen != assumed);
    const uint8_t found = uint8_t(seen >> shift);
    expected = bit_cast<T>(found);
    return found == mine;
  } else {
    using Bits = std::conditional_t<sizeof(T) == 8, unsigned long long,
                                    std::conditional_t<sizeof(T) == 4, unsigned, unsigned short>>;
    const Bits mine = bit_cast<Bits>(expected);
    const Bits seen = atomicCAS(reinterpret_cast<Bits*>(address), mine, bit_cast<Bits>(T(desired)));
    expected = bit_cast<T>(seen);
    return seen == mine;
  }
}
""",
    "atomic_or_byte": _BYTE_ATOMIC.format(what="Or", name="or", call="atomicOr(word, value << shift)"),
    "atomic_and_byte": _BYTE_ATOMIC.format(
        what="And", name="and", call="atomicAnd(word, (value << shift) | ~(255u << shift))"
    ),
    "lane_id": """\
// The number of the thread in its warp.
__device__ __forceinline__ int lane_id() {
  int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}
""",
    "named_barrier": """\
// Waits for `threads` threads of the block at barrier `number`.
__device__ __forceinline__ void named_barrier(int number, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
""",
    "elect_one": """\
// True in one of the warp's active lanes.
__device__ __forceinline__ bool elect_one() {
#if __CUDA_ARCH__ >= 900
  int elected;
  asm volatile(
      "{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 %0, 1, 0, p; }" : "=r"(elected));
  return elected != 0;
#else
  int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane == __ffs(__activemask()) - 1;
#endif
}
""",
    "copy_async": """\
// Starts a copy of BYTES bytes from global to shared memory.
template <int BYTES>
__device__ __forceinline__ void copy_async(void* shared, const void* global) {
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  if constexpr (BYTES == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], %2;" ::"r"(to), "l"(global), "n"(BYTES) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(global), "n"(BYTES) : "memory");
  }
}
""",
    "copy_async_commit": """\
// Makes a group of the copies that were started.
__device__ __forceinline__ void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
""",
    "copy_async_wait": """\
// Waits until at most N groups of copies are under way.
template <int N>
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
""",
    "mma_m16n8k16_f16": _MMA.format(type="f16", element="__half"),
    "mma_m16n8k16_bf16": _MMA.format(type="bf16", element="__nv_bfloat16"),
}
_NEEDS = {
    "load_vec": ("Vec",),
    "store_vec": ("Vec",),
    "compare_exchange": ("bit_cast",),
    "mma_m16n8k16_f16": ("header f16",),
    "mma_m16n8k16_bf16": ("header bf16",),
}
_STANDARD = (
    (r"std::conditional_t|std::common_type_t", "type_traits"),
    (r"\bmemcpy\b", "cstring"),
    (r"\bu?int(8|16|32|64|ptr)_t\b|\bINT64_MIN\b", "cstdint"),
    (r"\bINT_MIN\b", "climits"),
)


_TILES = {1: "one 8x8 tile", 2: "two 8x8 tiles", 4: "four 8x8 tiles"}


def _matrix(name: str) -> str:
    """ldmatrix_x4, stmatrix_x2_trans..."""
    verb, count, *flags = name.split("_")
    loads = verb == "ldmatrix"
    tiles = int(count[1:])
    constraint = "=r" if loads else "r"
    return (_LOAD_MATRIX if loads else _STORE_MATRIX).format(
        count=_TILES[tiles],
        how=", transposed" if flags else "",
        name=name,
        operation=f"{verb}.sync.aligned.m8n8.{count}{'.trans' if flags else ''}.shared.b16",
        registers=", ".join(f"%{i}" for i in range(tiles)),
        operands=", ".join(f'"{constraint}"(x[{i}])' for i in range(tiles)),
        tiles=tiles,
    )


def preamble(used: Iterable[str], text: str) -> str:
    """Includes and functions for a file whose kernels are `text`."""
    order: dict[str, None] = {}

    def add(name: str) -> None:
        for each in _NEEDS.get(name, ()):
            add(each)
        order[name] = None

    for name in used:
        add(name)
    names = sorted(order, key=lambda each: each != "Vec")
    functions = [_matrix(each) if "matrix_" in each else _FUNCTIONS[each] for each in names if each not in _HEADERS]
    whole = "\n".join([*functions, text])
    includes = [_HEADERS[each] for each in names if each in _HEADERS]
    includes += [header for word, header in _STANDARD if re.search(word, whole)]
    lines = [f"#include <{each}>" for each in sorted(set(includes))]
    return "\n".join([*lines, *([""] if lines else []), *functions])
