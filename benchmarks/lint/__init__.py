"""How fast `hotloop lint` reads."""
