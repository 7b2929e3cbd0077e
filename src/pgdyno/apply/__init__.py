"""Apply and revert plans, with a receipt before each change; set host values during trials."""
