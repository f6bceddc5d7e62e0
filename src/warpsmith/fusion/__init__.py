"""Fusion analysis: which ops shape the kernel, how the body splits into functions, and how a module becomes steps.

In: HLO.  Out: `FusionAnalysis` (roots, heroes, the emitter that the rules choose), `PartitionedComputation`s, and the
module's plan of kernels and host steps.
"""

from warpsmith.fusion.analysis import FusionAnalysis, Refusal, analyze
from warpsmith.fusion.partitioner import PartitionedComputation, Subgraph, partition
from warpsmith.fusion.schedule import Plan, Step, plan
from warpsmith.fusion.wrap import wrap

__all__ = [
    "FusionAnalysis",
    "PartitionedComputation",
    "Plan",
    "Refusal",
    "Step",
    "Subgraph",
    "analyze",
    "partition",
    "plan",
    "wrap",
]
