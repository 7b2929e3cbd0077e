"""Types shared by several packages: frozen dataclasses. Standard library only, no I/O."""
