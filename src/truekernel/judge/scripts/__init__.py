"""Evaluation scripts of others: what they and the candidate inside change, and whether what they compare ran under one state."""
