"""remote_loading: files that come over a network are copied to a local disk while the program trains."""
