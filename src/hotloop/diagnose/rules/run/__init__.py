"""The run as a whole."""
