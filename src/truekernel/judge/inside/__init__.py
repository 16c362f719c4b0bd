"""What runs behind the walls, next to the candidate. It holds inputs alone: no reference, no expected output, no seed, no verdict; and what it tells is a claim."""
