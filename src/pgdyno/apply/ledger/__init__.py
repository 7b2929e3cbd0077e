"""Receipts, and the log that holds them."""
