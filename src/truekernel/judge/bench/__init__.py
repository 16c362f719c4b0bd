"""Is one candidate faster? Trusted processes hold the clock, in fresh pairs, in alternate blocks, and what they computed is looked at afterwards."""
