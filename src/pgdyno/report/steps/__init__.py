"""Steps of the Insert Benchmark."""
