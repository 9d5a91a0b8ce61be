"""The path of a batch to the step."""
