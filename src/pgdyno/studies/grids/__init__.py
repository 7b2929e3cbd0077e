"""Views of workloads over loads, database sizes, and numbers of clients or workers. Pure."""
