"""Adapter for host facts from /proc, /sys and cgroups below a relocatable root."""
