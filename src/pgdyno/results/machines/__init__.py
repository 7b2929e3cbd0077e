"""Comparison of two machines or builds."""
