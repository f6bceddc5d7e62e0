"""The machine that runs IR."""
