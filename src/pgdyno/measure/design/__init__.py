"""How an experiment is laid out in time and on CPUs. Pure."""
