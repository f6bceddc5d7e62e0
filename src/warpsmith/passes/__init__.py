"""Passes over the IR, one file a pass; `manager.py` runs them by name, `pipeline.py` lists them in order."""
