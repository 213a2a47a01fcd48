"""Times of single launches, occupancy, and the rates that a GPU can reach."""
