"""Load from load hosts, and rounds after one was lost."""
