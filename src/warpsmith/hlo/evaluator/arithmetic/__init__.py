"""Numbers of each kind in numpy: integers, floats by format, complex numbers, conversions."""
