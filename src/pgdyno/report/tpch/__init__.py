"""Passes of TPC-H."""
