"""Steps: workloads that work on what the one before has left."""
