"""Compares a structure with the output of PDB2PQR.

Writes prepared.pdb and prepared.pqr with the residues that got charges, report.txt,
states.csv and metrics.json; fails if amino acids got none."""
import csv
import json
import pathlib
import shutil
import sys

from gaps import warn

before_file, after_file, pqr_file, out = map(pathlib.Path, sys.argv[1:])
WATER = {"HOH", "WAT", "DOD", "H2O", "SOL", "TP3", "TIP"}
# Force-field names for states of standard residues.
STANDARD = {"HID": "HIS", "HIE": "HIS", "HIP": "HIS", "HSD": "HIS", "HSE": "HIS", "HSP": "HIS", "CYX": "CYS", "CYM": "CYS", "ASH": "ASP", "GLH": "GLU", "LYN": "LYS", "TYM": "TYR"}


def read(path):
    """Atom names by residue (chain, number with insertion code), in file order."""
    residues = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith(("ATOM", "HETATM")):
            key = line[21].strip(), line[22:27].strip()
            residue = residues.setdefault(key, {"name": line[17:20].strip(), "hetero": line.startswith("HETATM"), "atoms": set()})
            residue["atoms"].add(line[12:16].strip())
    return residues


charges = {}
for line in pqr_file.read_text(encoding="utf-8", errors="replace").splitlines():
    if line.startswith(("ATOM", "HETATM")):
        key = line[21].strip(), line[22:27].strip()
        charges[key] = charges.get(key, 0) + float(line.split()[-2])

before, after = read(before_file), read(after_file)
after = {key: residue for key, residue in after.items() if key in charges}


def title(key):
    return f"{before[key]['name']} {key[1]} of chain {key[0] or '(no name)'}"


warn(before_file, "the missing residues are not built, and the chain ends there are not charged.")

lost = [key for key in before if key not in after]
water = [key for key in lost if before[key]["name"] in WATER]
ligands = [key for key in lost if before[key]["hetero"] and key not in water and not {"N", "CA", "C"} <= before[key]["atoms"]]
residues = [key for key in lost if key not in water and key not in ligands]
if residues:
    more = f" and {len(residues) - 10} more" if len(residues) > 10 else ""
    sys.exit("left out: " + ", ".join(map(title, residues[:10])) + more)

heavy = {key: sorted(atom for atom in after[key]["atoms"] - before[key]["atoms"] if not atom.lstrip("0123456789").startswith("H")) for key in after if key in before}
added = {key: atoms for key, atoms in heavy.items() if atoms}

with open(after_file, encoding="utf-8", errors="replace") as lines, open(out / "prepared.pdb", "w", encoding="utf-8") as kept:
    for line in lines:
        if not line.startswith(("ATOM", "HETATM")) or (line[21].strip(), line[22:27].strip()) in charges:
            kept.write(line)
shutil.copyfile(pqr_file, out / "prepared.pqr")

with open(out / "states.csv", "w", newline="", encoding="utf-8") as f:
    table = csv.writer(f)
    table.writerow(["chain", "number", "residue", "state", "charge_e"])
    for key, atoms in after.items():
        name = STANDARD.get(atoms["name"], atoms["name"])
        if name not in {"ASP", "GLU", "HIS", "LYS", "CYS", "TYR", "ARG"}:
            continue
        has = atoms["atoms"]
        state = {
            "ASP": "neutral" if has & {"HD1", "HD2"} else "charged", "GLU": "neutral" if has & {"HE1", "HE2"} else "charged",
            "HIS": "charged" if {"HD1", "HE2"} <= has else "neutral, proton on ND1" if "HD1" in has else "neutral, proton on NE2",
            "LYS": "charged" if "HZ3" in has else "neutral", "CYS": "neutral" if "HG" in has else "in a disulfide bond or charged",
            "TYR": "neutral" if "HH" in has else "charged", "ARG": "charged",
        }[name]
        table.writerow([key[0], key[1], name, state, round(charges.get(key, 0), 2)])

lines = [f"{len(after)} residues with {sum(len(r['atoms']) for r in after.values())} atoms, including hydrogens."]
lines += [f"Added to {title(key)}: {', '.join(atoms)}." for key, atoms in added.items()] or ["No heavy atom was missing."]
lines += [f"Left out: {title(key)}." for key in ligands]
if water:
    lines.append(f"Left out: {len(water)} water molecules.")
(out / "report.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
(out / "metrics.json").write_text(json.dumps({
    "atoms": sum(len(r["atoms"]) for r in after.values()), "residues": sum(r["name"] not in WATER for r in after.values()),
    "added_heavy_atoms": sum(map(len, added.values())), "charge_e": round(sum(charges.values()), 2), "ligands_left_out": len(ligands),
}))
