"""Levers of the hardware: what processor and firmware do, and what is built for them."""
