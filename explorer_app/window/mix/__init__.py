"""The mix panel: sources by rows, painted."""
