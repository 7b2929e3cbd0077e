"""The Insert Benchmark: steps, sizes, measuring and views."""
