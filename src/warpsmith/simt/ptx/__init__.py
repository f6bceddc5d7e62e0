"""The machine that runs PTX."""
