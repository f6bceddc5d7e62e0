"""The names that a kernel is written in: `T`, `Tx`, and what belongs to them."""
