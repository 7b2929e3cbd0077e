"""``tune``: search for the best configuration, shorten the answer, prove it."""
