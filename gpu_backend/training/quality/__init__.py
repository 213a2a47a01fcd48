"""How good pictures are, without anybody else's weights: a small CNN's features, and distances between sets of them."""
