"""Compile, run, compare: the report of `warpsmith run`."""
