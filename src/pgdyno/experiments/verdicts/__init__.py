"""What blocks say: effects, curves and splits, with intervals."""
