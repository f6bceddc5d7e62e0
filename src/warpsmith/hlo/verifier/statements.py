"""What each rule of the verifier says, by the name that its errors carry.

In: nothing.  Out: `STATEMENTS`.  A rule's statement is the next step of its error where the rule has no better one.
"""

from __future__ import annotations

__all__ = ["STATEMENTS"]

STATEMENTS: dict[str, str] = {
    # any op
    "opcode.known": "an opcode is one of HLO's",
    "opcode.operands": "an op has as many operands as its kind takes",
    "opcode.attributes": "an op carries the attributes that its kind needs",
    "attribute.word": "an attribute that names a choice names one of those that exist",
    "operand.array": "an operand is an array; take a tuple apart with get-tuple-element",
    "operand.scalar": "this operand is a scalar",
    "operand.type": "an operand has an element type that the op is defined for; convert it",
    "operand.same-type": "operands that are combined have one element type; convert one of them",
    "operand.sizes": "operands that are combined have the same sizes; broadcast the smaller one first",
    "operand.rank": "an operand has as many dimensions as the op needs",
    "operand.token": "this operand is a token",
    "operand.tuple": "this operand is a tuple",
    "result.array": "the result is an array",
    "result.shape": "the result has the element type and sizes that the op makes of its operands",
    "result.layout": "an op that only passes data on keeps its layout; put a copy where the layout changes",
    "dimensions.range": "a dimension number is at least 0 and below the rank",
    "dimensions.distinct": "a dimension is named once",
    "dimensions.count": "an attribute names as many dimensions as the op needs",
    "dimensions.sorted": "these dimension numbers are in ascending order",
    # elementwise
    "compare.type": "compare's type fits its operands: FLOAT or TOTALORDER, SIGNED, UNSIGNED (also for pred)",
    "complex.parts": "complex is made of two arrays of f32 or of f64",
    "stochastic-convert.bits": "the random numbers are unsigned integers as wide as the operand's floats",
    "reduce-precision.bits": "exponent_bits is at least 1 and mantissa_bits at least 0",
    "select.predicate": "select's first operand is pred, a scalar or with the sizes of the result",
    "clamp.bounds": "a bound is a scalar or has the value's sizes, and has its type",
    # moving elements
    "constant.value": "a constant holds a value of its own shape",
    "parameter.number": "a parameter has a number",
    "iota.dimension": "iota counts along a dimension of its result",
    "iota.type": "iota makes integers, floats or complex numbers",
    "broadcast.sizes": "a broadcast keeps the size of each operand dimension",
    "reshape.elements": "a reshape keeps the number of elements",
    "dynamic-reshape.sizes": "dynamic-reshape takes one s32 scalar for each dimension of its result",
    "bitcast.bits": "a bitcast keeps the number of bits",
    "bitcast-convert.kind": "bitcast-convert keeps complex numbers complex and others not",
    "bitcast-convert.last-dimension": "a type n times as wide is made of a last dimension of n elements",
    "slice.range": "a slice lies in its dimension: 0 <= start <= limit <= size",
    "slice.stride": "a stride is 1 or more",
    "pad.interior": "interior padding is 0 or more",
    "pad.size": "negative padding leaves a size of 0 or more",
    "concatenate.sizes": "concatenated arrays agree in all dimensions but one",
    "dimension-size.type": "a dimension's size is an s32 scalar",
    # functions that an op applies
    "function.parameters": "a called computation takes what the op gives it",
    "function.scalars": "the function of an op that works by element takes and returns scalars",
    "function.result": "a called computation returns what the op needs",
    # reductions and windows
    "window.rank": "a window has one entry a dimension",
    "window.positive": "a window's sizes, strides and dilations are 1 or more",
    "select-and-scatter.source": "the source has one element for each place of the window",
    "sort.dimension": "sort names one dimension of its operands",
    "topk.k": "k is at least 0 and at most the size of the last dimension",
    # indexed access
    "index.type": "start indices are integer scalars of one type, or one vector of them",
    "index.count": "there is one start index a dimension",
    "dynamic-slice.sizes": "a slice fits into the operand",
    "update.sizes": "an update fits into the operand",
    "gather.index-vector": "index_vector_dim is a dimension of the indices, or their rank for scalar indices",
    "gather.index-map": "each component of an index vector stands for one dimension of the operand",
    "gather.slice-sizes": "there is one slice size a dimension, at least 0 and at most the dimension's size",
    "gather.collapsed": "a collapsed or batching dimension has a slice size of 0 or 1",
    "gather.batching": "batching dimensions of operand and indices pair up, with equal sizes, and aren't indexed",
    "gather.dimensions": "each operand dimension is an offset, collapsed or batching dimension, one of them",
    "scatter.windows": "an update's window dimensions and the inserted and batching ones make up the operand's",
    "scatter.updates": "updates have one window for each index vector",
    # linear algebra
    "dot.pairs": "batch and contracting dimensions of both sides pair up, with equal sizes",
    "dot.types": "both sides are floats, integers, complex or pred alike, and so is the result",
    "ragged.dimension": "ragged-dot has one ragged dimension, and a group dimension where its mode needs one",
    "scaled-dot.scales": "a scale has the rank of what it scales, and divides its sizes",
    "convolution.labels": "dim_labels name batch, features and each space dimension once, for each array",
    "convolution.groups": "group counts are at least 1, one of them is 1, and they divide what they split",
    "convolution.features": "the kernel's input features times feature_group_count are the input's features",
    "fft.type": "FFT and IFFT take complex numbers, RFFT floats, IRFFT complex numbers",
    "fft.length": "fft_length gives the sizes of the last one to three dimensions",
    "matrix.square": "the last two dimensions are equal",
    "matrix.batch": "the matrices are batched alike",
    "batch-norm.features": "scale, offset, mean and variance have one element a feature",
    # random numbers
    "rng.parameters": "rng takes two scalars of the result's type",
    "rng.state": "the state goes in and comes out with one shape",
    # calls
    "tuple.index": "an index names an element of the tuple",
    "while.condition": "a loop's condition returns pred[]",
    "conditional.index": "conditional chooses by pred[] between two branches, or by s32[] among any number",
    "conditional.branches": "conditional has one operand a branch",
    "custom-call.layouts": "operand_layout_constraints gives one shape an operand, of its type and sizes",
    "alias.index": "an alias names a part of an operand or parameter and a part of the result",
    "alias.shape": "what shares memory has the same size",
    "alias.once": "a part of the memory is shared or donated once",
    # several devices, asynchronous forms
    "groups.ids": "replica_groups names each device once, from 0 on, in groups that aren't empty",
    "groups.shards": "a gathered or scattered dimension grows or shrinks by the number of devices in a group",
    "pairs.distinct": "a device sends once and receives once",
    "async.shape": "an asynchronous op passes on a tuple of operands, results and contexts",
    # module
    "module.names": "names of computations, and of instructions in a computation, are distinct",
    "module.callees": "a called computation belongs to the module",
    "module.entry": "nothing calls the entry",
    "module.entry-layout": "entry_computation_layout has the shapes of the entry's parameters and result",
    "module.counts": "replica_count and num_partitions are at least 1",
}
