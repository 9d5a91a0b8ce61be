"""What a finding costs per step, with an interval, and the facts that several rules share."""
