"""What the user has set, as one frozen value; how it changes; how it becomes a request; how it is kept."""
