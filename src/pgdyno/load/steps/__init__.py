"""Steps of longer workloads, by pgdyno-driver."""
