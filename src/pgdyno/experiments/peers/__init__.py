"""Configurations that other tools recommend."""
