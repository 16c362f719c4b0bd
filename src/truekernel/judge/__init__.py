"""One candidate, which may cheat: walls around it, the check, the verdict, the evidence."""
