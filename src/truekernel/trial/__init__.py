"""One program on one case: what it puts out, how far honest programs differ, whether it passes the gate, and what proves a mutant wrong."""
