"""A program such as an object-relational mapper writes: a shop whose customers buy."""
