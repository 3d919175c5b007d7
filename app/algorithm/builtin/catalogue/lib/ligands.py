"""Reads ligands and generates a conformer of each: NNNNN.sdf, and ligands.csv with the names.

Molecules are protonated by Open Babel at the pH, embedded with ETKDG and the seed, and
minimized with MMFF94, or UFF where it lacks parameters. Molecules that can't be used are
listed with the reason; if none can, the script fails."""
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
    """The molecule protonated for the pH by Open Babel's rules."""
    text = subprocess.run(["obabel", "-:" + Chem.MolToSmiles(molecule), "-p", pH, "-osmi"], capture_output=True, text=True, timeout=60, check=True).stdout
    return Chem.MolFromSmiles(text.split()[0]) if text.split() else None


def conformer(molecule):
    """The molecule in 3D, or the reason why it can't be docked."""
    if len(Chem.GetMolFrags(molecule)) > 1:
        molecule = max(Chem.GetMolFrags(molecule, asMols=True), key=lambda part: part.GetNumHeavyAtoms())  # without counterions
    if not 1 < molecule.GetNumHeavyAtoms() <= LARGEST:
        return f"it has {molecule.GetNumHeavyAtoms()} heavy atoms; 2 to {LARGEST} can be docked"
    if any(atom.GetNumRadicalElectrons() for atom in molecule.GetAtoms()):
        return "it is a radical, for which docking has no parameters: add the missing hydrogens"
    molecule = protonated(molecule) or molecule
    molecule = Chem.AddHs(molecule)
    if AllChem.EmbedMolecule(molecule, randomSeed=int(seed)) != 0 and AllChem.EmbedMolecule(molecule, randomSeed=int(seed), useRandomCoords=True) != 0:
        return "RDKit could not generate a conformer: the stereochemistry may be impossible"
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
