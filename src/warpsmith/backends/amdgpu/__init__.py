"""AMD's GPUs, as far as assembly."""
