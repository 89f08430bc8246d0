"""What a notebook sees: one object whose calls read like sentences."""
