"""An experiment from its first round to its stored result."""
