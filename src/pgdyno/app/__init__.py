"""Use cases, by room, and their common ground: this machine and its installations."""
