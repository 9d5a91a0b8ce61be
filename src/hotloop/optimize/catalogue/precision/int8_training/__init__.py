"""int8_training: the products of linear layers in 8-bit integers, by torchao."""
