"""Apply, switch and revert with receipts; host settings for the duration of a trial."""
