"""The trace reader beside its peers."""
