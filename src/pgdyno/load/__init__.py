"""Programs that issue load, and how they are frozen and released."""
