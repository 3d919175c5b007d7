"""Reads which residues a setting names."""
import re
import sys


def choose(text, chains):
    """The residues of a text such as A10-20,B52A, as a set of (chain, (number, insertion code)), where
    chains has the (number, insertion code) of each residue of each chain."""
    found = set()
    for part in text.split(","):
        chain, first, code, last, end = re.fullmatch(r"(.)(-?\d+)([A-Za-z]?)(?:-(-?\d+)([A-Za-z]?))?", part).groups()
        if chain not in chains:
            sys.exit(f"molrun: The structure has no chain {chain}, which {part} names: its chains are {', '.join(chains)}.")
        lowest, highest = (int(first), code), (int(last or first), end or ("" if last else code))
        for edge in (lowest, highest):
            if edge not in chains[chain]:
                sys.exit(f"molrun: The structure has no residue {chain}{edge[0]}{edge[1]}, which {part} names.")
        if lowest > highest:
            sys.exit(f"molrun: {part} runs backwards.")
        found |= {(chain, place) for place in chains[chain] if lowest <= place <= highest}
    return found
