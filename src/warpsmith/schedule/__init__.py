"""The plan of a module: buffers, and steps that fill them in order."""
