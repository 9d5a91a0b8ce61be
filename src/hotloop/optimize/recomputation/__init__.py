"""Parts of a model that are computed again in the backward, so that their saved tensors need not be kept."""
