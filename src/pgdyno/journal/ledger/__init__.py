"""Receipts, the log that holds them, and its lock."""
