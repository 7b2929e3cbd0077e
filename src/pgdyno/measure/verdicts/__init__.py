"""Verdicts from blocks: effects, curves and splits, with intervals. Pure."""
