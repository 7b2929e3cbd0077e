"""When to stop, and what a plan is worth."""
