"""The same comparisons on several machines: measured, kept and combined."""
