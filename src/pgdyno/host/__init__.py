"""The machine: its properties, processes, probes and files; nouns beside the rooms."""
