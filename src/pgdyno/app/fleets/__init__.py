"""Have the machines of a fleet measure, keep their answers, and combine them."""
