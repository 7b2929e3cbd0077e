"""``accelerate``: plan, measure, decide, apply."""
