"""How the posterior is found, over any source of blocks. May import core and data."""
