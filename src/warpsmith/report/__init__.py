"""What was done and what came of it, as data and as text for people."""
