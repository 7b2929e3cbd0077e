"""Bundled experiments, found by walking the package: one file adds one study."""
