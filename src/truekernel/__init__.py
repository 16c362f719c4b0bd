"""Truekernel: is this GPU kernel right, is it really faster, and how far can the checker that says so be trusted?"""
