"""Passes of TPC-H on an arm."""
