"""The machine: properties, processes, probes, tracing and files; the types are in this directory."""
