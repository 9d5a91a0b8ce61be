"""Attention that a program writes out by hand: where it is, and the call of `scaled_dot_product_attention`."""
