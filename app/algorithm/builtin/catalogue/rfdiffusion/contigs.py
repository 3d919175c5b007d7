"""Checks that the residues in contigs and hotspots are in the structure."""
import re
import sys

contigs, structure, *hotspots = sys.argv[1:]
there = set()
if structure != "none":
    with open(structure, encoding="utf-8") as lines:
        there = {(line[21], int(line[22:26])) for line in lines if line.startswith("ATOM")}
wanted = [(found[1], int(found[2]), int(found[3] or found[2])) for found in re.finditer(r"([A-Za-z])(\d+)(?:-(\d+))?", " ".join([contigs, *hotspots]))]
if wanted and not there:
    sys.exit("molrun: The contigs name residues of a structure, and there is none.")
for chain, first, last in wanted:
    if first > last:
        sys.exit(f"molrun: The contigs name {chain}{first}-{last}, which runs backwards.")
    for number in range(first, last + 1):
        if (chain, number) not in there:
            sys.exit(f"molrun: The structure has no residue {chain}{number}, which the contigs or hotspots name.")
