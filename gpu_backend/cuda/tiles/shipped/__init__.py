"""Tables of tiles that come with the program, one a family of architectures, as `latentloom tune` wrote them."""
