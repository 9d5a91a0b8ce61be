"""What the model and the optimizer compute."""
