"""What an optimization may do inside the user's process, and knobs that are switched while it runs."""
