"""Machine properties, effective limits, and the sources of kernel values."""
