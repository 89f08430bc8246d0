"""How a number is made: one clock, one lock, interleaved pairs, and a record of everything that could have changed it."""
