"""compile: the model through torch.compile."""
