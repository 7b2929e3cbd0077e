"""Files of /proc and /sys, and how root safely reads and writes other users' files."""
