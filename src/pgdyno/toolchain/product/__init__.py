"""Manifests and packages."""
