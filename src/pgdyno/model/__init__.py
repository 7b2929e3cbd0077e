"""Nouns that several subjects share: frozen dataclasses. Standard library only, no I/O."""
