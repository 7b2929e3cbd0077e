"""From a host and a server to a plan: facts, levers, the memory proof, formats."""
