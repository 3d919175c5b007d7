"""Writes the search box as Vina options: around a center, residues of the receptor, or a
ligand. A box without receptor atoms is rejected: any ligand would dock into empty space,
with an affinity of 0."""
import json
import re
import sys

receptor, size, target, kind, value = sys.argv[1:]
MARGIN = 5.0  # Å around residues or a ligand
NEAR = 4.0  # Å, contact distance of ligand and receptor atoms
FEW = 50  # minimum number of receptor atoms that near to the box; a pocket has hundreds
PEPTIDE = 40  # maximum residues of a chain that could occupy a pocket like a ligand
LARGEST = 60.0  # Å, edge above which Vina's search means little


def refuse(sentence):
    sys.exit("molrun: " + sentence)


def place(line):
    return tuple(float(line[k:k + 8]) for k in (30, 38, 46))


atoms = {}
with open(receptor, encoding="utf-8") as lines:
    for line in lines:
        if line.startswith("ATOM"):
            atoms.setdefault((line[21].strip(), line[22:27].strip()), []).append(place(line))

if kind == "center":
    low = [c - float(size) / 2 for c in json.loads(value)]
    high = [c + float(size) / 2 for c in json.loads(value)]
else:
    if kind == "residues":
        points = []
        for word in re.split(r"[ ,]+", value.strip()):
            chain, number = word.split(":")
            if (chain, number) not in atoms:
                chains = ", ".join(sorted({c or "(no name)" for c, _ in atoms}))
                refuse(f"The receptor has no residue {word}; its chains are {chains}.")
            points += atoms[chain, number]
    else:
        from rdkit import Chem
        with open(value, encoding="utf-8-sig", errors="replace") as lines:
            text = lines.read()
        supplier = Chem.SDMolSupplier()
        supplier.SetData(text, sanitize=False)
        molecule = Chem.MolFromPDBBlock(text, sanitize=False) if value.endswith(".pdb") else next(iter(supplier), None)
        if molecule is None or molecule.GetNumConformers() == 0 or molecule.GetNumAtoms() == 0:
            refuse("The ligand in the binding site could not be read, or has no coordinates.")
        points = [tuple(p) for p in molecule.GetConformer().GetPositions()]
        if len(points) > 1 and not any(p[2] for p in points):
            refuse("The ligand in the binding site has 2D coordinates: give it in the receptor's coordinates.")
    low = [min(p[k] for p in points) - MARGIN for k in range(3)]
    high = [max(p[k] for p in points) + MARGIN for k in range(3)]
    for k in range(3):
        lacking = float(size) - (high[k] - low[k])
        if lacking > 0:
            low[k], high[k] = low[k] - lacking / 2, high[k] + lacking / 2
        if high[k] - low[k] > LARGEST:
            refuse(f"The residues or the ligand span {high[k] - low[k] - 2 * MARGIN:.0f} Å: choose a single binding site.")



def within(points, margin=0.0):
    return sum(all(low[k] - margin <= p[k] <= high[k] + margin for k in range(3)) for p in points)


inside = sum(map(within, atoms.values()))
if inside == 0:
    refuse("The box contains no receptor atom: check the center, which must be in the coordinates of the receptor file.")
near = sum(within(points, NEAR) for points in atoms.values())
if near < FEW:
    print(f"molrun:warning The box hardly touches the receptor: {near} of its atoms lie in the box or within {NEAR:.0f} Å. Check the center; affinities in empty space mean nothing.")
chains = {}
for (chain, number), points in atoms.items():
    chains.setdefault(chain, []).append(within(points))
for chain, counts in chains.items():
    if len(counts) <= PEPTIDE < max(map(len, chains.values())) and any(counts):
        print(f"molrun:warning Chain {chain} of the receptor ({len(counts)} residues) lies in the box. If ligands should bind in its place, choose only the other chains.")
with open(target, "w", encoding="utf-8") as out:
    for k, axis in enumerate("xyz"):
        out.write(f"center_{axis} = {(low[k] + high[k]) / 2:.3f}\nsize_{axis} = {high[k] - low[k]:.3f}\n")
print(f"The box of {' x '.join(f'{high[k] - low[k]:.1f}' for k in range(3))} Å contains {inside} receptor atoms.")
