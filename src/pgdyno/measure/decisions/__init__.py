"""Stopping rules, and decisions on plans. Pure."""
