"""Checks that the target has the named chains and hotspots: BindCraft checks only after loading its
weights, and drops insertion codes."""
import re
import sys

structure, chains, hotspots = sys.argv[1], sys.argv[2].split(","), sys.argv[3]
atoms = {}  # by chain and residue


def stop(text):
    sys.exit("molrun: " + text)


with open(structure, encoding="utf-8") as lines:
    for line in lines:
        if line.startswith("ATOM"):
            atoms.setdefault(line[21], {}).setdefault(line[22:27].strip(), set()).add(line[12:16].strip())
for chain in chains:
    if chain not in atoms:
        stop(f"The target has no chain {chain}: its chains are {', '.join(atoms)}.")
    codes = [name for name in atoms[chain] if name[-1].isalpha()]
    if codes:
        stop(f"Chain {chain} has residues with insertion codes, such as {chain}{codes[0]}, which BindCraft confuses with residues without: renumber them.")
for part in filter(None, hotspots.split(",")):
    chain, first, last = re.fullmatch(r"([A-Za-z]?)(\d*)(?:-(\d+))?", part).groups()
    chain = chain or chains[0]
    if chain not in chains:
        stop(f"Hotspot {part} is not in the chains of the target, {', '.join(chains)}.")
    if first and int(first) > int(last or first):
        stop(f"Hotspot {part} runs backward.")
    for number in range(int(first), int(last or first) + 1) if first else ():
        if "N" not in atoms[chain].get(str(number), ()):  # without it, BindCraft skips the residue
            stop(f"The hotspots name {chain}{number}, but the target has no such residue with a backbone.")
