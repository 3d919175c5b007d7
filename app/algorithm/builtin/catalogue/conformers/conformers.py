"""Writes conformers.sdf, conformers.csv and metrics.json."""
import csv
import json
import pathlib
import sys

from molecules import read, refuse
from rdkit import Chem
from rdkit.Chem import AllChem, rdMolAlign

out, count, differ_by, seed, kind, value = sys.argv[1:]
out, count, differ_by, seed = pathlib.Path(out), int(count), float(differ_by), int(seed)
MOST = 10_000
LARGEST = 200  # heavy atoms


def conformers(molecule):
    """The molecule with its conformers, and their energies and numbers, lowest first; or the
    reason for failure."""
    if not 1 <= molecule.GetNumHeavyAtoms() <= LARGEST:
        return f"it has {molecule.GetNumHeavyAtoms()} heavy atoms; up to {LARGEST} can be embedded", []
    if any(atom.GetNumRadicalElectrons() for atom in molecule.GetAtoms()):
        return "it is a radical, for which the force fields have no parameters", []
    if len(Chem.GetMolFrags(molecule)) > 1:
        return "it consists of several molecules, such as a salt: remove counterions and solvent", []
    molecule = Chem.AddHs(molecule)
    if molecule.GetNumAtoms() == 1:
        return "it is a single atom", []
    numbers = list(AllChem.EmbedMultipleConfs(molecule, count, randomSeed=seed)) or list(AllChem.EmbedMultipleConfs(molecule, count, randomSeed=seed, useRandomCoords=True))
    if not numbers:
        return "RDKit could not generate a conformer: the stereochemistry may be impossible", []
    if AllChem.MMFFHasAllMoleculeParams(molecule):
        results, field = AllChem.MMFFOptimizeMoleculeConfs(molecule, maxIters=1000), "MMFF94"
    elif AllChem.UFFHasAllMoleculeParams(molecule):
        results, field = AllChem.UFFOptimizeMoleculeConfs(molecule, maxIters=1000), "UFF"
    else:
        return "neither MMFF94 nor UFF has parameters for all its atoms", []
    energies = sorted((energy, number) for number, (_, energy) in zip(numbers, results))
    bare = Chem.RemoveHs(molecule)
    kept = []
    for energy, number in energies:
        if all(rdMolAlign.GetBestRMS(bare, bare, number, other) >= differ_by for _, other in kept):
            kept.append((energy, number))
    molecule.SetProp("force_field", field)
    return molecule, kept


rows, failed, lowest = [], [], None
with Chem.SDWriter(str(out / "conformers.sdf")) as sdf:
    for k, (name, molecule) in enumerate(read(kind, value), 1):
        if k > MOST:
            refuse(f"The file has more than {MOST} molecules: split it.")
        smiles, kept = "", []
        if not isinstance(molecule, str):
            smiles = Chem.MolToSmiles(molecule)
            molecule, kept = conformers(molecule)
        if isinstance(molecule, str):
            failed.append(f"{name}: {molecule}")
            rows.append([name, smiles, "", "", "", "", molecule])
            print(failed[-1], flush=True)
            continue
        for n, (energy, number) in enumerate(kept, 1):
            molecule.SetProp("_Name", f"{name}_{n}")
            molecule.SetProp("energy_kcal_mol", f"{energy:.3f}")
            sdf.write(molecule, confId=number)
            rows.append([name, smiles, n, f"{energy:.3f}", f"{energy - kept[0][0]:.3f}", molecule.GetProp("force_field"), ""])
        lowest = kept[0][0]
        if k % 20 == 0:
            print(f"{k} molecules done", flush=True)
if not rows:
    refuse("There is no molecule in the file.")
if len(failed) == len(rows):
    refuse(f"No conformer could be generated. {failed[0]}.")

with open(out / "conformers.csv", "w", newline="", encoding="utf-8") as f:
    csv.writer(f).writerows([["name", "smiles", "conformer", "energy_kcal_mol", "above_kcal_mol", "force_field", "note"], *rows])
good = len({row[0] for row in rows if not row[-1]})
metrics = {"conformers": len(rows) - len(failed), "molecules": good, "failed": len(failed)}
if good == 1:
    metrics["lowest_kcal_mol"] = round(lowest, 3)
(out / "metrics.json").write_text(json.dumps(metrics))
