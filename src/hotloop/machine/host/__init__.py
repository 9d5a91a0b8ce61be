"""The host as the kernel shows it: identity, topology, control groups, mounts, processes."""
