"""Server inspection: information that a server provides about itself."""
