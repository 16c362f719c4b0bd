"""Walls around code that arrived from outside: `policy` says what it may do, `process` starts it, `entering` raises the walls, `probing` tries them from inside.

Files that run before the walls are up use the standard library alone, so that they start at once.
"""
