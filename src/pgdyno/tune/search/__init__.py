"""Automatic search over settings. Pure."""
