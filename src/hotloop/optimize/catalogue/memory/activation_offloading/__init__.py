"""activation_offloading: saved activations wait for the backward in host memory."""
