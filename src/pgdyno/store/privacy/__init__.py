"""Experiments without secrets, and without names of people and hosts. Documents in, documents out."""
