"""From the probe's records to an Observation."""
