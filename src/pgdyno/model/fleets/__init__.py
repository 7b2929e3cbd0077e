"""Fleets to be measured: the order, its trials, the workers."""
