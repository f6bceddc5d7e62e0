"""What a tile program means, in numpy: each primitive on whole tiles, in the order of the text."""
