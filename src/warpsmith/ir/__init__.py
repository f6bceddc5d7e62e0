"""The IR: types, attributes, SSA core, builder, text, verifier, rewriter.  Importing any of it registers all ops."""

from warpsmith.ir import dialects as dialects
