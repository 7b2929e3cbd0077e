"""The Insert Benchmark: its steps and sizes, how they are measured, and their figures."""
