"""Text and tables about captured workloads and their replays. Pure."""
