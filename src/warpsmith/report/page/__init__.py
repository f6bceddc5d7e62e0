"""Dumps: files, and one page."""
