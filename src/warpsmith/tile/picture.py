"""A picture of a kernel's buffers: who owns which element of each register tile, and in which bank a shared one lies.

In: a kernel.  Out: SVG text, one grid below the other.
"""

from __future__ import annotations

import re

from warpsmith.errors import UsageError
from warpsmith.tile.layout.picture import bank_picture, owner_picture
from warpsmith.tile.model.buffers import buffer_of
from warpsmith.tile.program import Kernel

__all__ = ["kernel_svg"]

_SIZE = re.compile(r'<svg[^>]*?width="([\d.]+)"[^>]*?height="([\d.]+)"')
_GAP = 16


def kernel_svg(kernel: Kernel) -> str:
    """One picture of all buffers that the kernel allocates.  UsageError when there is none with a layout."""
    pictures: list[str] = []
    for op in kernel.module.walk():
        if op.name != "tile.alloc":
            continue
        buffer = buffer_of(op.result)
        if buffer.layout is None:
            continue
        title = f"{buffer.name}: {buffer.type}{list(buffer.shape)} in {buffer.scope} memory, {buffer.layout}"
        if buffer.scope == "local":
            pictures.append(owner_picture(buffer.layout, buffer.shape, title=title))
        else:
            pictures.append(bank_picture(buffer.layout, buffer.shape, buffer.type.bits, title=title))
    if not pictures:
        raise UsageError(f"kernel '{kernel.name}' allocates nothing that has a layout")
    return _stacked(pictures)


def _stacked(pictures: list[str]) -> str:
    """SVG pictures below one another."""
    width, height = 0.0, 0.0
    parts: list[str] = []
    for picture in pictures:
        size = _SIZE.search(picture)
        wide, high = (float(size[1]), float(size[2])) if size is not None else (0.0, 0.0)
        body = picture[picture.index("<svg") :]
        parts.append(body.replace("<svg", f'<svg y="{height:g}"', 1))
        width, height = max(width, wide), height + high + _GAP
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}">'
    return "\n".join([head, *parts, "</svg>"])
