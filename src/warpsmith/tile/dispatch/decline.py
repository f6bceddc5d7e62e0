"""How a variant refuses a call that it has begun to look at."""

from __future__ import annotations

__all__ = ["Decline"]


class Decline(Exception):
    """A variant can't take this call after all; the message is the reason."""
