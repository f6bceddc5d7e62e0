"""How far a correct kernel may be from the reference interpreter."""
