"""The layout of an experiment in time and on CPUs. Pure."""
