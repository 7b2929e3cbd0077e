"""Use cases, one file each. ``wiring.py`` alone builds adapters."""
