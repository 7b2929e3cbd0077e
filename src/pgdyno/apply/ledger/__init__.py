"""Receipts, and the journal that contains them."""
