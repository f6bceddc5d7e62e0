"""Indexing maps of HLO ops: which elements of its operands an element of a result is made of."""
