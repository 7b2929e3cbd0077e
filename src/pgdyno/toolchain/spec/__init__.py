"""Specification of a build."""
