"""Parses the residues named by a setting."""
import re
import sys


def choose(text, chains):
    """The residues in a text such as A10-20,B52A, as a set of (chain, (number, insertion code)). chains
    holds the (number, insertion code) of the residues of each chain."""
    found = set()
    for part in text.split(","):
        chain, first, code, last, end = re.fullmatch(r"(.)(-?\d+)([A-Za-z]?)(?:-(-?\d+)([A-Za-z]?))?", part).groups()
        if chain not in chains:
            sys.exit(f"molrun: {part} names chain {chain}, which the structure does not have: its chains are {', '.join(chains)}.")
        lowest, highest = (int(first), code), (int(last or first), end or ("" if last else code))
        for edge in (lowest, highest):
            if edge not in chains[chain]:
                sys.exit(f"molrun: {part} names residue {chain}{edge[0]}{edge[1]}, which the structure does not have.")
        if lowest > highest:
            sys.exit(f"molrun: The range {part} runs backward.")
        found |= {(chain, place) for place in chains[chain] if lowest <= place <= highest}
    return found
