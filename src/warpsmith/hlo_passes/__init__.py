"""HLO to HLO: forms that say the same with less, and modules as the schedule wants them.  `apply` runs passes by name.

One file a pass; `manager` finds them, `kit` rewrites a module, `wrap` prepares it for the schedule.
"""

from warpsmith.hlo_passes.manager import apply

__all__ = ["apply"]
