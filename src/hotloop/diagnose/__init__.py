"""Dynamic rules: what an Observation says about why a program is slow, and what each thing costs."""
