"""Counts what gemmi reads of structures. Takes a path in each line, and prints a line of JSON
for each: models, chains (with polymers), residues (of polymers), ligands, waters, atoms."""
import json
import sys

import gemmi


def count(path):
    try:
        structure = gemmi.read_structure(path, format=gemmi.CoorFormat.Detect)
    except (RuntimeError, ValueError, IndexError, UnicodeDecodeError) as why:
        return {"error": str(why)}
    structure.setup_entities()
    if len(structure) == 0:
        return {"models": 0, "chains": 0, "residues": 0, "ligands": 0, "waters": 0, "atoms": 0}
    model = structure[0]
    polymers, residues, ligands, waters = 0, 0, 0, 0
    for chain in model:
        polymer = 0
        for residue in chain.first_conformer():
            if residue.is_water():
                waters += 1
            elif residue.entity_type == gemmi.EntityType.Polymer:
                polymer += 1
            else:
                ligands += 1
        residues += polymer
        polymers += polymer > 0
    return {"models": len(structure), "chains": polymers, "residues": residues, "ligands": ligands, "waters": waters, "atoms": model.count_atom_sites()}


for line in sys.stdin:
    print(json.dumps(count(line.rstrip("\n"))), flush=True)
