"""Machine properties, effective limits, and the boot-time sources of kernel values."""
