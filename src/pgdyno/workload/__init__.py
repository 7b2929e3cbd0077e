"""Workloads: bundled ones, captured ones, and copies of their databases."""
