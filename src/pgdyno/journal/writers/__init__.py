"""Writers of changes, one per kind and way: each implements ``model.ports.ChangeWriter``."""
