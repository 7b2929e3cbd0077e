"""Files with the hosts of a cell."""
