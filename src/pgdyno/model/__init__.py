"""The nouns of pgdyno: frozen dataclasses, units, errors and ports. Standard library only, no I/O."""
