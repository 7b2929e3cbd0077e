"""Fleets: the file that orders one, and its trials in a store."""
