"""Names of C++ variables: from hints, unique in their scope and the ones around it."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["LIBRARY", "RESERVED", "Scope", "identifier"]

RESERVED: frozenset[str] = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class compl const
    constexpr const_cast continue decltype default delete do double dynamic_cast else enum explicit export extern false
    float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private
    protected public register reinterpret_cast return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t
    while xor xor_eq concept requires char8_t
    threadIdx blockIdx blockDim gridDim warpSize half min max abs isnan isinf isfinite signbit INFINITY NAN INT_MIN
    exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh sqrt cbrt
    rsqrt pow erf     floor ceil trunc round rint fabs copysign fma fmod fmin fmax y0 y1 yn j0 j1 jn gamma div labs
    main Vec bit_cast int8_t uint8_t int16_t uint16_t int32_t uint32_t int64_t uint64_t
    """.split()
)
"""Words of C++, and names that CUDA's headers or our own helper functions have taken."""

LIBRARY: frozenset[str] = frozenset(
    """
    abort alloca atexit bcmp bcopy bsearch bzero calloc canonicalize clock clock64 cospi difftime dim3 drand48 drem
    erfc erfcinv erfcx erfinv exit exp10 fadd fclose fdim fdiv fdivide feof ferror fflush ffma ffs fgetc fgets
    finite fmaximum fmaxmag fminimum fminmag fmul fopen fprintf fputc fputs fread free frexp fscanf fseek fsqrt fsub
    ftell fwrite getc getchar getenv getline getw hypot ilogb isalnum isalpha isdigit islower isprint isspace
    isupper ldexp ldiv lgamma llabs lldiv llmax llmin llrint llround localtime logb lrint lround malloc mblen memcmp
    memcpy memmem memmove memset mktime modf nan nanosleep nearbyint nextafter nextdown nextup norm norm3d norm4d
    normcdf normcdfinv perror popen printf putc puts qsort rand random rcbrt realloc remainder remove remquo rename
    rewind rhypot rnorm rnorm3d rnorm4d roundeven scalb scalbln scalbn scanf select setstate significand sincos
    sincospi sinpi snprintf sprintf srand srandom sscanf strcat strcmp strcpy strlen system tgamma time tmpfile
    toascii toint uint3 ullmax ullmin umax umin ungetc
    """.split()
)
"""Functions of C's library and CUDA's, as whose overload nvcc would refuse a kernel; a variable may be called so."""


def identifier(text: str) -> str:
    """A C++ identifier close to `text`: `%multiply.5` gives multiply_5."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", text.strip("%")).strip("_")
    return f"v{name}" if name[:1].isdigit() else name


class Scope:
    """The names that are taken in a block of C++ and around it."""

    __slots__ = ("outer", "taken")

    def __init__(self, outer: Scope | None = None, taken: Iterable[str] = ()) -> None:
        self.outer = outer
        self.taken: set[str] = set(taken)

    def has(self, name: str) -> bool:
        """Whether a name is taken, in this scope or one around it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.taken:
                return True
            scope = scope.outer
        return name in RESERVED

    def new(self, hint: str) -> str:
        """`hint`, or hint_1, hint_2, ... where it is taken."""
        stem = identifier(hint) or "value"
        name, count = stem, 0
        while self.has(name):
            count += 1
            name = f"{stem}_{count}"
        self.taken.add(name)
        return name
