"""Parallel workers: required, planned and launched."""
