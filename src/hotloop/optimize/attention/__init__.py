"""Attention that a program writes out by hand: where it is, what replaces it, whether that computes the same.

In: the source and the functions of a running model. Out: a call of `scaled_dot_product_attention` in their place, or
the reason why there can be none. Reads source with `ast`, because it is imported in the user's process.
"""
