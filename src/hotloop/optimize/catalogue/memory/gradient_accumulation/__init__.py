"""gradient_accumulation: the model sees a batch in parts, and learns from the whole."""
