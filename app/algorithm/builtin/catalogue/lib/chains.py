"""Extracts chains of a PDB file.

  chains.py SOURCE TARGET LETTERS"""
import sys

source, target, wanted = sys.argv[1:]
with open(source, encoding="utf-8") as file:
    lines = file.readlines()
there = dict.fromkeys(line[21] for line in lines if line.startswith("ATOM"))
for chain in wanted.split():
    if chain not in there:
        sys.exit(f"molrun: The receptor has no protein chain {chain}; its chains are {', '.join(there)}.")
kept = True
with open(target, "w", encoding="utf-8") as out:
    for line in lines:
        if line.startswith(("ATOM", "HETATM")):
            kept = line[21] in wanted.split()
        if kept or not line.startswith(("ATOM", "HETATM", "TER")):
            out.write(line)
