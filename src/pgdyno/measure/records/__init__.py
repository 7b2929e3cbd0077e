"""The record of an experiment at its start and its end. Pure."""
