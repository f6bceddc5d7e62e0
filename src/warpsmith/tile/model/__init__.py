"""What is known of a tile kernel: element types, buffers, scopes, primitives, active threads."""
