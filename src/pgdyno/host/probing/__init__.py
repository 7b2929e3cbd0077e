"""Measurements of operation costs and CPU idling."""
