"""Library calls: ops that whole routines do better than loops of our own."""
