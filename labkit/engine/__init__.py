"""One visible loop: `naive` is the oracle, `decode` the engine; everything else builds their parts."""
