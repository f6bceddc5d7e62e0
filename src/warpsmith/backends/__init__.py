"""Back ends: from a kernel to what runs it.  `backend_of` finds a device's own."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpsmith.backends.base import Backend
    from warpsmith.devices import Device

__all__ = ["backend_of"]

_FOLDERS = {"cpu": "cpu", "cuda": "nvptx", "rocm": "amdgpu"}
"""Platform of a device -> folder."""


def backend_of(device: Device) -> Backend[Any]:
    """The back end that makes code for a device."""
    found: Backend[Any] = importlib.import_module(f"{__name__}.{_FOLDERS[device.platform]}.backend").BACKEND(device)
    return found
