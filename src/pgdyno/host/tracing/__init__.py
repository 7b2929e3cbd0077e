"""Recordings of running programs: stack samples, scheduling, hardware counters and simulation."""
