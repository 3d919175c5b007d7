"""Checks that the structure has the residues that the settings name, whole, and that those of hotspots
and masks are in the contigs: RFdiffusion passes over those that are not."""
import json
import re
import sys

settings, contigs, structure = json.load(open(sys.argv[1])), sys.argv[2], sys.argv[3]
atoms, codes = {}, {}  # of residues, in the order of the file


def stop(text):
    sys.exit("molrun: " + text)


def residues(text):
    for chain, first, last in re.findall(r"([A-Za-z])(\d+)(?:-(\d+))?", text):
        if int(first) > int(last or first):
            stop(f"{chain}{first}-{last} runs backwards.")
        for number in range(int(first), int(last or first) + 1):
            yield chain, number


if structure != "none":
    with open(structure, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("ATOM"):
                place = line[21], int(line[22:26])
                atoms.setdefault(place, set()).add(line[12:16].strip())
                codes.setdefault(place, set()).add(line[26])
wanted = list(residues(contigs))
for chain, number in wanted:
    here = atoms.get((chain, number))
    if here is None:
        stop(f"The structure has no residue {chain}{number}, which the contigs name.")
    if len(codes[chain, number]) > 1:
        stop(f"The structure has residues {chain}{number} with insertion codes, which RFdiffusion takes for one: number them anew.")
    if not {"N", "CA", "C"} <= here:
        stop(f"The residue {chain}{number} lacks atoms of its backbone: complete the structure, or leave it out of the contigs.")
for setting, title in (("hotspots", "hotspot"), ("hide_sequence", "residue whose type is hidden"), ("hide_structure", "residue whose place is hidden")):
    value = settings.get(setting) or ""
    for chain, number in residues(" ".join(value) if isinstance(value, list) else value):
        if (chain, number) not in wanted:
            stop(f"The {title}, {chain}{number}, is not in the contigs.")
if settings.get("partial"):  # each place of the contigs is that of the structure
    blocks = [block.split("/") for block in contigs.split()]
    fixed = lambda block: all(part[0].isalpha() for part in block if part != "0")
    ends = [fixed(block) and (block[-1] == "0" or block is blocks[-1]) for block in blocks]
    places = []
    for block in [b for b, target in zip(blocks, ends) if not target] + [b for b, target in zip(blocks, ends) if target]:
        for part in block:
            if part[0].isalpha():
                places += residues(part)
            elif part != "0":
                low, _, high = part.partition("-")
                if high and low != high:
                    stop(f"With partial diffusion, {part} in the contigs must be one length: that of the structure.")
                places += [None] * int(low)
    whole = [place for place, here in atoms.items() if "CA" in here]
    if len(places) != len(whole):
        stop(f"With partial diffusion, the contigs must have as many residues as the structure: they have {len(places)}, and it has {len(whole)}.")
    for k, (place, own) in enumerate(zip(places, whole), 1):
        if place not in (None, own):
            stop(f"With partial diffusion, residues keep their places: {place[0]}{place[1]} is residue {k} of the contigs, and {own[0]}{own[1]} of the structure.")
