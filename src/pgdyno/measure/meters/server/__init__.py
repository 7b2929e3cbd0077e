"""Meters of the server under test."""
