"""Steps of the Insert Benchmark. Pure."""
