"""How an experiment is laid out in time and read afterwards. Pure."""
