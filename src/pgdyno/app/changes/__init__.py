"""Applying, switching and reverting, with receipts; the machine's state for the time of a trial."""
