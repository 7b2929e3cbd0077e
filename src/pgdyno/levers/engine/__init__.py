"""From levers to a plan: what they need to know, what they find, what the memory proof says."""
