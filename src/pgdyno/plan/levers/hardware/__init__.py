"""Levers of the hardware: processor and firmware features, and code built for them."""
