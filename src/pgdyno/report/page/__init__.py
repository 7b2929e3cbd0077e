"""The page of an experiment, and its verdicts."""
