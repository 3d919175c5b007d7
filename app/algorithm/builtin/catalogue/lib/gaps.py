"""Warns about breaks in the chains of a PDB file, where residues were not resolved."""
import math

BOUND = 2.5  # Å, maximum distance between C and N of bonded neighbors


def gaps(path):
    """Descriptions of the neighbors in a chain that are too far apart to be bonded."""
    residues = {}
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("ATOM") and line[12:16] in (" N  ", " C  "):
                place = tuple(float(line[k:k + 8]) for k in (30, 38, 46))
                residues.setdefault((line[21], line[22:27].strip()), {})[line[13]] = place
    keys = list(residues)
    return [
        f"{a[0].strip()}:{a[1]} and {b[1]}".lstrip(":") for a, b in zip(keys, keys[1:])
        if a[0] == b[0] and "C" in residues[a] and "N" in residues[b] and math.dist(residues[a]["C"], residues[b]["N"]) > BOUND
    ]


def warn(path, effect):
    """Prints a warning that names any gaps and their effect."""
    found = gaps(path)
    if found:
        more = f" and {len(found) - 6} more" if len(found) > 6 else ""
        print(f"molrun:warning The chain is broken between {', '.join(found[:6])}{more}: {effect} The type pdbfixer can build short gaps.", flush=True)
