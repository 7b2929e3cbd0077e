"""Passes of TPC-H. Pure."""
