"""Remove secrets, and names of people and hosts, from documents of experiments."""
