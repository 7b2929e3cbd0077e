"""What a server tells about itself."""
