"""What one fusion is: the ops that shape its kernel, and how its body splits into functions.

In: HLO.  Out: `FusionAnalysis` (roots, heroes, the emitter that the rules choose) and `PartitionedComputation`s.
"""

from warpsmith.fusion.analysis import FusionAnalysis, Refusal, analyze
from warpsmith.fusion.partitioner import PartitionedComputation, Subgraph, partition

__all__ = ["FusionAnalysis", "PartitionedComputation", "Refusal", "Subgraph", "analyze", "partition"]
