"""From levers to a plan: contexts, findings, and the memory proof."""
