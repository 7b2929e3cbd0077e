"""Parallel workers of what is measured: required, planned, launched."""
