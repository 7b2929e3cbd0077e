"""Adapter: facts about this machine, read from /proc, /sys and cgroups under a relocatable root."""
