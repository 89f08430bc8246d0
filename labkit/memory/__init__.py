"""Dimension 2: what is kept, and in how many bytes."""
