"""What this machine is, what it can do, what it is doing, and what would spoil a measurement on it."""
