"""The panel of local edits: bent channels, style channels."""
