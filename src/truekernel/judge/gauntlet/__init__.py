"""Known ways to cheat, each as a small candidate with an honest twin: our own judge is measured by them."""
