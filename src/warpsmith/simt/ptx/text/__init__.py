"""PTX text to data."""
