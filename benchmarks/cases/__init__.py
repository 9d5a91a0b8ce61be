"""Programs with one fault, each beside the same training without it: what `diagnose` says of both."""
