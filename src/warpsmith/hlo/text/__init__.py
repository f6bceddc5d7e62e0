"""HLO text: reading and printing."""
