"""Checks that the structure has the residues named by the settings, with complete backbones, and that
hotspots and masks are in the contigs: RFdiffusion ignores those that are not."""
import json
import re
import sys

settings, contigs, structure = json.load(open(sys.argv[1])), sys.argv[2], sys.argv[3]
atoms, codes = {}, {}  # by residue, in file order


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
        stop(f"The contigs name residue {chain}{number}, which the structure does not have.")
    if len(codes[chain, number]) > 1:
        stop(f"The structure has residues {chain}{number} with insertion codes, which RFdiffusion reads as one: renumber them.")
    if not {"N", "CA", "C"} <= here:
        stop(f"Residue {chain}{number} lacks backbone atoms: complete the structure, or leave the residue out of the contigs.")
blocks = [block.split("/") for block in contigs.split()]
fixed = [all(part[0].isalpha() for part in block if part != "0") and (block[-1] == "0" or block is blocks[-1]) for block in blocks]
for block, is_fixed in zip(blocks, fixed):
    parts = [part for part in block if part[0].isalpha()]
    if is_fixed and len({part[0] for part in parts}) > 1:
        stop(f"{'/'.join(parts)} has residues of two chains: end each chain with /0 and a space.")
    starts = [int(re.findall(r"\d+", part)[0]) for part in parts]
    if is_fixed and starts != sorted(starts):
        stop(f"{'/'.join(parts)} names residues out of chain order.")
for setting, title in (("hotspots", "hotspot"), ("hide_sequence", "residue with a masked type"), ("hide_structure", "residue with a masked position")):
    value = settings.get(setting) or ""
    for chain, number in residues(" ".join(value) if isinstance(value, list) else value):
        if (chain, number) not in wanted:
            stop(f"The {title}, {chain}{number}, is not in the contigs.")
if settings.get("partial"):  # positions in the contigs and the structure correspond
    places = []
    for block in [b for b, last in zip(blocks, fixed) if not last] + [b for b, last in zip(blocks, fixed) if last]:
        for part in block:
            if part[0].isalpha():
                places += residues(part)
            elif part != "0":
                low, _, high = part.partition("-")
                if high and low != high:
                    stop(f"With partial diffusion, {part} in the contigs must be a single length, that of the structure.")
                places += [None] * int(low)
    whole = [place for place, here in atoms.items() if "CA" in here]
    if len(places) != len(whole):
        stop(f"With partial diffusion, the contigs must have as many residues as the structure: they have {len(places)}, the structure {len(whole)}.")
    for k, (place, own) in enumerate(zip(places, whole), 1):
        if place not in (None, own):
            stop(f"With partial diffusion, residues keep their positions: residue {k} is {place[0]}{place[1]} in the contigs, but {own[0]}{own[1]} in the structure.")
