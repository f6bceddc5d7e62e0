"""How HLO text is laid out: XLA's print options as one immutable value, and XLA's presets.

In: nothing.  Out: `PrintStyle`, which the parser detects from text and the printer obeys.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT", "SHORT", "PrintStyle"]


@dataclass(frozen=True, slots=True)
class PrintStyle:
    """What the text looks like.

    percent: names carry `%`.  operand_shapes: operands carry their shapes.  program_shape: computations carry
    `(p: f32[4]) -> f32[4]`.  operand_index: every fifth operand carries `/*index=5*/`.  layouts, metadata: print those
    that the module states (a text without them reads back as a module without them).  tail: what follows the last `}`.
    """

    percent: bool = True
    operand_shapes: bool = False
    program_shape: bool = True
    operand_index: bool = True
    layouts: bool = True
    metadata: bool = True
    tail: str = "\n\n"


DEFAULT = PrintStyle()
"""What XLA 0.10's `HloModule.to_string()` prints."""
SHORT = PrintStyle(percent=False, program_shape=False, operand_index=False)
"""XLA's short parsable form, which JAX's `as_hlo_text()` prints before compilation."""
