"""HLO as XLA serialises it: HloModuleProto, HloProto, and HloSnapshot, read without XLA.

`wire` reads protocol buffers by a table, `schema` is the table, `literals` and `attributes` make typed values of its
messages, `reader` the module.
"""
