"""What passes note on a kernel's entry for those who launch it.

`clamp-indices` appends arguments with the sizes of buffers, `vectorize-cpu` writes outputs past the caches; whoever
passes the arguments, and chooses where outputs lie, has to know.
"""

from __future__ import annotations

__all__ = ["SIZES", "STREAMS"]

SIZES = "warpsmith.sizes"
"""Numbers of the buffers whose sizes are the kernel's last arguments."""
STREAMS = "warpsmith.streams"
"""Some outputs are written past the caches: they start at a whole line."""
