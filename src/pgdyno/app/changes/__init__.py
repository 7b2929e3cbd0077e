"""Apply, switch and revert, with receipts; host settings for the time of a trial."""
