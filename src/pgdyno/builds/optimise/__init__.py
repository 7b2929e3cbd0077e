"""Optimisation of the program after compiling."""
