"""Query plans, and the limits of their parallel degree."""
