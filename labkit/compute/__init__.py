"""Dimension 1: the arithmetic of a step, and what it is done in."""
