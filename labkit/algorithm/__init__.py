"""Dimension 4: doing less work for the same answer."""
