"""Fleets: the order, and the finding of each experiment, which a report is made of."""
