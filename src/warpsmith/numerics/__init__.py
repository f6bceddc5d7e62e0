"""The numerics contract: accuracy bounds, modes, edge values, seeded inputs, comparison, and elementary functions.

Pure data and exact arithmetic; nothing here knows of HLO, IR or a target.
"""
