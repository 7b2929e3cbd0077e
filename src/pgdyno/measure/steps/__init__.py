"""Steps: workloads that work on the data of the previous one."""
