"""The same comparisons on several machines: measured, stored and combined."""
