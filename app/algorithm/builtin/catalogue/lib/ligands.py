"""Reads ligands and gives each a conformer: NNNNN.sdf, and ligands.csv with their names.

Conformers are those of ETKDG with the seed, minimized by MMFF94, protonated by Open Babel
at the pH. What can't be read is in the table with the reason; if that is all, it fails."""
import csv
import pathlib
import re
import subprocess
import sys

from molecules import read, refuse
from rdkit import Chem
from rdkit.Chem import AllChem

target, seed, pH, kind, value = sys.argv[1:]
target = pathlib.Path(target)
target.mkdir()
MOST = 20_000
LARGEST = 100  # heavy atoms


def protonated(molecule):
    """The molecule as it is at the pH, by Open Babel's rules."""
    text = subprocess.run(["obabel", "-:" + Chem.MolToSmiles(molecule), "-p", pH, "-osmi"], capture_output=True, text=True, timeout=60, check=True).stdout
    return Chem.MolFromSmiles(text.split()[0]) if text.split() else None


def conformer(molecule):
    """The molecule in 3D, or a sentence."""
    if len(Chem.GetMolFrags(molecule)) > 1:
        molecule = max(Chem.GetMolFrags(molecule, asMols=True), key=lambda part: part.GetNumHeavyAtoms())  # without counterions
    if not 1 < molecule.GetNumHeavyAtoms() <= LARGEST:
        return f"it has {molecule.GetNumHeavyAtoms()} heavy atoms; 2 to {LARGEST} can be docked"
    if any(atom.GetNumRadicalElectrons() for atom in molecule.GetAtoms()):
        return "it is a radical, for which docking has no parameters: complete it with hydrogens"
    molecule = protonated(molecule) or molecule
    molecule = Chem.AddHs(molecule)
    if AllChem.EmbedMolecule(molecule, randomSeed=int(seed)) != 0 and AllChem.EmbedMolecule(molecule, randomSeed=int(seed), useRandomCoords=True) != 0:
        return "RDKit found no conformer: its stereochemistry may be impossible"
    if AllChem.MMFFHasAllMoleculeParams(molecule):
        AllChem.MMFFOptimizeMolecule(molecule, maxIters=500)
    else:
        AllChem.UFFOptimizeMolecule(molecule, maxIters=500)
    return molecule


rows, good = [], 0
for k, (name, molecule) in enumerate(read(kind, value), 1):
    if k > MOST:
        refuse(f"The file has more than {MOST} ligands: split it.")
    smiles, reason = "", molecule
    if not isinstance(molecule, str):
        smiles = Chem.MolToSmiles(molecule)
        molecule = reason = conformer(molecule)
    heavy = 0
    if not isinstance(molecule, str):
        reason, heavy = "", molecule.GetNumHeavyAtoms()
        molecule.SetProp("_Name", name)
        with Chem.SDWriter(str(target / f"{k:05d}.sdf")) as out:
            out.write(molecule)
        good += 1
    rows.append([k, re.sub(r"\s+", " ", name)[:100], smiles, heavy, reason])
if not rows:
    refuse("There is no ligand in the file.")
if good == 0:
    refuse("No ligand could be used: " + rows[0][-1] + ".")
with open(target / "ligands.csv", "w", newline="", encoding="utf-8") as out:
    csv.writer(out).writerows([["number", "name", "smiles", "heavy_atoms", "reason"], *rows])
print(f"{good} of {len(rows)} ligands have conformers.")
