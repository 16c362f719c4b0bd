"""Compile and run device code: `simt` on a CPU; `recorder` turns a launch plan's function into data."""
