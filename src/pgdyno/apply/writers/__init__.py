"""Writers of changes, one per kind and access path.

Each implements ``model.ports.ChangeWriter``.
"""
