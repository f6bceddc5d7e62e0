"""MLIR's text: reading and printing."""
