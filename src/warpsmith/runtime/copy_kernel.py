"""The LLVM IR of a kernel that copies memory, past the caches or through them: of buffers, and to measure bandwidth.

In: how many bytes a workgroup copies.  Out: IR of `copy(argv, begin, end)`, which copies workgroups `begin` to `end`
from the first buffer of `argv` to the second.
"""

from __future__ import annotations

__all__ = ["GROUP_BYTES", "LINE", "copy_ir"]

LINE = 64
"""Bytes of a cache line, which one non-temporal store fills."""

GROUP_BYTES = 256 << 10
"""Bytes that a workgroup copies, unless there is a reason for another number."""


def copy_ir(group_bytes: int, *, source_alignment: int = LINE, cached: bool = False) -> str:
    """The kernel, for workgroups of `group_bytes`, a multiple of two lines.  The target begins at a line.

    `cached`: what is copied is wanted soon, so it goes through the caches.
    """
    past = "" if cached else ", !nontemporal !0"
    return f"""
define void @copy(ptr %argv, i64 %begin, i64 %end) {{
entry:
  %q = getelementptr ptr, ptr %argv, i64 1
  %in = load ptr, ptr %argv
  %out = load ptr, ptr %q
  %lo = mul i64 %begin, {group_bytes}
  %hi = mul i64 %end, {group_bytes}
  %any = icmp slt i64 %lo, %hi
  br i1 %any, label %loop, label %exit
loop:
  %i = phi i64 [%lo, %entry], [%next, %loop]
  %j = add i64 %i, {LINE}
  %a = getelementptr i8, ptr %in, i64 %i
  %b = getelementptr i8, ptr %in, i64 %j
  %c = getelementptr i8, ptr %out, i64 %i
  %d = getelementptr i8, ptr %out, i64 %j
  %x = load <16 x i32>, ptr %a, align {source_alignment}
  %y = load <16 x i32>, ptr %b, align {source_alignment}
  store <16 x i32> %x, ptr %c, align {LINE}{past}
  store <16 x i32> %y, ptr %d, align {LINE}{past}
  %next = add i64 %i, {2 * LINE}
  %more = icmp slt i64 %next, %hi
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}
!0 = !{{i32 1}}
"""
