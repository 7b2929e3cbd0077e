"""What a server and its programs tell before anything is planned."""
