"""Recordings of running programs: samples of their stacks, and their scheduling."""
