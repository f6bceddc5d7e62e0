"""Tile programs: stages of their text, and runs that compare two ways."""
