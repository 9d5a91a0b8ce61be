"""What was predicted of each candidate, against what a trial of it measured."""
