"""Fails if a structure has no unit cell: without one, gemmi finds no neighbors in the
crystal, but succeeds."""
import re
import sys

with open(sys.argv[1], encoding="utf-8", errors="replace") as lines:
    for line in lines:
        found = re.match(r"(?:CRYST1|\s*(?i:_cell\.length_a))\s+([0-9.]+)", line)
        if found and float(found[1]) > 1:  # 1 means none
            sys.exit(0)
sys.exit("no unit cell")
