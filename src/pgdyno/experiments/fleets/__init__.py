"""The same comparisons on several machines."""
