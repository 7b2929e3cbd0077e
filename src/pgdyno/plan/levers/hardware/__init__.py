"""Levers of the hardware layer: processor and firmware features, and code built for them."""
