"""float8_training: the products of linear layers in 8-bit floating point, by torchao."""
