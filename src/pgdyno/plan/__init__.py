"""Planning: facts about a host and a server, levers, the memory proof, and output formats."""
