"""device_selection: the GPUs that are best connected, and free."""
