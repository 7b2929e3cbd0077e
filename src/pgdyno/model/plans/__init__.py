"""Plans, changes and receipts."""
