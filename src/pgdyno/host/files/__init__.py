"""Files of /proc and /sys, and how root reads and writes files of others."""
