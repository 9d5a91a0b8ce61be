"""chunked_cross_entropy: the loss of a large vocabulary without copies of the logits."""
