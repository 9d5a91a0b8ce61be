"""Heavy ways of looking at a program, each in a short window of its own, so that none touches the light timing."""
