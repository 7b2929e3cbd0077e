"""Making changes and taking them back."""
