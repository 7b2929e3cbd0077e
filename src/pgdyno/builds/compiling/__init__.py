"""From source to installed files."""
