"""Step times of real programs, recorded step by step: the noise that simulations draw from."""
