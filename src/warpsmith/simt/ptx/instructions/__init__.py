"""PTX's instructions, one file a kind, to steps of the machine."""
