"""Two machines or builds beside each other."""
