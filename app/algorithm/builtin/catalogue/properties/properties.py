"""Writes properties.csv, molecules.svg and metrics.json."""
import csv
import json
import pathlib
import sys

from molecules import read, refuse
from rdkit import Chem
from rdkit.Chem import QED, Crippen, Descriptors, Draw, Lipinski, rdMolDescriptors

out, kind, value = pathlib.Path(sys.argv[1]), *sys.argv[2:]
MOST = 1_000_000
DRAWN = 24


def properties(molecule):
    p = {
        "weight": round(Descriptors.MolWt(molecule), 3), "logp": round(Crippen.MolLogP(molecule), 3), "tpsa_A2": round(rdMolDescriptors.CalcTPSA(molecule), 2),
        "donors": Lipinski.NumHDonors(molecule), "acceptors": Lipinski.NumHAcceptors(molecule), "rotatable": Lipinski.NumRotatableBonds(molecule),
        "rings": Lipinski.RingCount(molecule), "aromatic_rings": Lipinski.NumAromaticRings(molecule), "sp3": round(Lipinski.FractionCSP3(molecule), 3),
        "heavy_atoms": molecule.GetNumHeavyAtoms(), "charge": Chem.GetFormalCharge(molecule), "stereocentres": len(Chem.FindMolChiralCenters(molecule, includeUnassigned=True, useLegacyImplementation=False)),
        "qed": round(QED.qed(molecule), 4), "formula": rdMolDescriptors.CalcMolFormula(molecule),
    }
    p["lipinski_violations"] = sum((p["weight"] > 500, p["logp"] > 5, p["donors"] > 5, p["acceptors"] > 10))
    p["veber"] = "yes" if p["rotatable"] <= 10 and p["tpsa_A2"] <= 140 else "no"
    return p


drawn, count, failed, only, reason = [], 0, 0, None, ""
with open(out / "properties.csv", "w", newline="", encoding="utf-8") as f:
    names = list(properties(Chem.MolFromSmiles("C")))
    table = csv.writer(f)
    table.writerow(["name", "smiles", *names, "note"])
    for k, (name, molecule) in enumerate(read(kind, value), 1):
        if k > MOST:
            refuse(f"The file has more than {MOST} molecules: split it.")
        if isinstance(molecule, str):
            failed, reason = failed + 1, reason or f"{name}: {molecule}"
            table.writerow([name, "", *[""] * len(names), molecule])
            continue
        count += 1
        only = properties(molecule)
        table.writerow([name, Chem.MolToSmiles(molecule), *only.values(), ""])
        if len(drawn) < DRAWN:
            drawn.append((name, molecule))
if count == 0:
    refuse(f"No molecule could be read. {reason}." if failed else "There is no molecule in the file.")
legends = [name[:40] for name, _ in drawn]
(out / "molecules.svg").write_text(Draw.MolsToGridImage([m for _, m in drawn], molsPerRow=4 if len(drawn) > 1 else 1, subImgSize=(260, 220), legends=legends, useSVG=True), encoding="utf-8")
metrics = {"molecules": count, "failed": failed}
if count == 1:
    metrics |= {name: only[name] for name in ("weight", "logp", "tpsa_A2", "donors", "acceptors", "rotatable", "qed")}
(out / "metrics.json").write_text(json.dumps(metrics))
