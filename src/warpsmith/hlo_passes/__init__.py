"""HLO to HLO: forms that say the same with less, and modules as the schedule wants them.

One file a pass; `manager` finds and runs them, `kit` rewrites a module, `wrap` prepares it for the schedule.
"""
