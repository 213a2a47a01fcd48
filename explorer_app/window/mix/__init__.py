"""The mix panel: sources and their strengths in each row of w."""
