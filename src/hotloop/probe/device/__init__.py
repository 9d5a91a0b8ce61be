"""What the probe asks of an accelerator. In: torch's module for it; out: its clock, its memory, its graphs."""
