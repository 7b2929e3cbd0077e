"""The record of an experiment: its beginning and its end. Pure."""
