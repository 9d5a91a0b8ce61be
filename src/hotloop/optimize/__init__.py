"""What can be tried: the catalogue of optimizations and what each of them says of itself."""
