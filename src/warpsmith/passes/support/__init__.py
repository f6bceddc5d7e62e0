"""No passes, but what several of them share; and what the manager needs of them.

legality, edits                                 what may be alive after a pass; changes to a pipeline
capabilities                                    what the processor that a module is for can do
symbols                                         who names what
affine_lanes, lane_dependence, vector_lanes     iterations as lanes of vectors
"""
