"""The IR: types, attributes, SSA core, builder, text, verifier, rewriter."""
