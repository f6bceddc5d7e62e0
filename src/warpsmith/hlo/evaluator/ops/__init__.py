"""The interpreter's ops that aren't elementwise, one file a kind."""
