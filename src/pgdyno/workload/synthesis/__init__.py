"""Generates rows with the distributions in tables' statistics. Pure."""
