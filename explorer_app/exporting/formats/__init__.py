"""Picture formats: one module a format, each with an encoder and a scanner that finds the recipe."""
