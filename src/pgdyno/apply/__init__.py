"""Apply and revert plans, with a receipt before each change; host settings for the time of a trial."""
