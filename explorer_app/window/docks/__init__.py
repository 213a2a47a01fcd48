"""Docks, their tabs, and the workspaces that lay them out."""
