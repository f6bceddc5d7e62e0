"""Devices: what each GPU, and the CPU at hand, can do.

In: a name (`sm_90`, `H100 SXM`, `cpu`...).  Out: `Device`, read from the device's own file under `data/` (each number
with its source); the `cpu` device describes the machine that runs this.  Bottom layer: imports nothing but errors.
"""

from warpsmith.devices.device import Device, core_count, device, device_names

__all__ = ["Device", "core_count", "device", "device_names"]
