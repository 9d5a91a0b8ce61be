"""Which process this is and what the launcher told it: its rank, its configuration."""
