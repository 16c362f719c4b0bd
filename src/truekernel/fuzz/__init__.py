"""Find inputs that crash a deep-learning library or make it silently wrong."""
