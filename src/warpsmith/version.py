"""The version, at the bottom, where the cache's keys and the reports can read it."""

__version__ = "0.1.0"
