"""Captured workloads and their replays, for people. Pure."""
