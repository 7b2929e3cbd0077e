"""Blocks of metrics, built from measured slices, drains and disturbances. Pure."""
