"""The SSA core: operations, types, attributes, op rows, and rewriting."""
