"""Whether a plan pays, as text and for the page. Pure."""
