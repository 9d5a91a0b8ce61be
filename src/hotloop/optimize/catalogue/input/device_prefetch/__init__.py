"""device_prefetch: the next batch is made and moved while this one computes."""
