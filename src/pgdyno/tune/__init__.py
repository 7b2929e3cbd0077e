"""``tune``: search for the best configuration, make the answer short, prove it."""
