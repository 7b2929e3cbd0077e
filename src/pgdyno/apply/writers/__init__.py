"""Writers of changes, one per kind and access path.

Each implements ``base.ports.ChangeWriter``.
"""
