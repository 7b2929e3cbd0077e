"""Where servers under test live, and what sets load on them."""
