"""Dimension of its own: how a model is made. `python -m labkit.training.tiny_deepseek` trains the shipped one."""
