"""Plans, changes, receipts and builds."""
