"""Elements of pages and terminal text. Each subject's views are in the subject's directory. Pure."""
