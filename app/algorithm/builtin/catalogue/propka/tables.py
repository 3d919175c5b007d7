"""Tabulates a report of PROPKA and the structure that it read: pka.csv, charge.csv,
stability.csv and metrics.json.

PROPKA accepts residues with truncated side chains, which many crystal structures have, and only
warns. Residues that lack atoms of the charged group get a note in the table instead of a pKa."""
import csv
import json
import pathlib
import re
import sys

from gaps import warn

source, structure, out = map(pathlib.Path, sys.argv[1:])
CHARGED = {  # atoms that carry the charge of a side chain
    "ASP": ["OD1", "OD2"], "GLU": ["OE1", "OE2"], "HIS": ["ND1", "CD2", "CE1", "NE2"], "CYS": ["SG"], "TYR": ["OH"],
    "LYS": ["NZ"], "ARG": ["NE", "CZ", "NH1", "NH2"],
}
lines = source.read_text(encoding="utf-8", errors="replace").splitlines()


def after(title):
    """The data lines after a title."""
    start = next((k for k, line in enumerate(lines) if title in line), None)
    return [] if start is None else lines[start + 1:]


def write(name, head, rows):
    with open(out / name, "w", newline="", encoding="utf-8") as f:
        table = csv.writer(f)
        table.writerow(head)
        table.writerows(rows)


residues = {}
for line in structure.read_text(encoding="utf-8", errors="replace").splitlines():
    if line.startswith("ATOM") and line[17:20] in CHARGED:
        residues.setdefault((line[17:20], line[22:27].strip(), line[21]), set()).add(line[12:16].strip())
missing = {residue: [atom for atom in CHARGED[residue[0]] if atom not in atoms] for residue, atoms in residues.items()}
missing = {residue: atoms for residue, atoms in missing.items() if atoms}
if len(missing) > len(residues) / 2:
    sys.exit(f"molrun: {len(missing)} of {len(residues)} ionizable residues lack side-chain atoms.")

warn(structure, "pKa values near it mean little, and the charge lacks the missing residues.")

buried = {}
for line in lines:
    found = re.match(r"^(.{3})\s*(-?\d+)\s+(\S)\s+-?\d+\.\d+\s+(\d+) %", line)
    if found:
        buried[found[1].strip(), found[2], found[3]] = int(found[4])

groups = []
for line in after("SUMMARY OF THIS PREDICTION")[1:]:
    found = re.match(r"^ {3}(.{3})\s*(-?\d+) (\S)\s+(-?\d+\.\d+)\s+(-?\d+\.\d+)", line)
    if not found:
        break
    name, number, chain, pka, model = map(str.strip, found.groups())
    if float(pka) > 90 or (name, number, chain) in missing:  # above 90: a cysteine in a disulfide bond
        continue
    groups.append([name, chain, number, float(pka), float(model), round(float(pka) - float(model), 2), buried.get((name, number, chain), ""), ""])
if not groups:
    sys.exit("no group that can be charged")
left_out = [[name, chain, number, "", "", "", "", "left out: " + " ".join(atoms) + " missing"] for (name, number, chain), atoms in missing.items()]
write("pka.csv", ["group", "chain", "number", "pKa", "model_pKa", "shift", "buried_percent", "note"], groups + left_out)


def pairs(title, columns):
    rows = []
    for line in after(title):
        words = line.split()
        if len(words) == columns and all(re.fullmatch(r"-?\d+\.\d+", word) for word in words):
            rows.append(words)
        elif rows:
            break
    return rows


charge, stability = pairs("Protein charge of folded and unfolded state", 3), pairs("Free energy of", 2)
write("charge.csv", ["pH", "unfolded_e", "folded_e"], charge)
write("stability.csv", ["pH", "folding_kcal_mol"], stability)



def inside(figures):
    """The values that are not an end of PROPKA's pH range, which means that none was found."""
    return {name: value for name, value in figures.items() if 0.005 < value < 13.995}


metrics = {"groups": len(groups), "left_out": len(left_out), "shifted": sum(abs(row[5]) > 1 for row in groups)}
found = re.search(r"The pI is\s+(\S+) \(folded\) and\s+(\S+) \(unfolded\)", "\n".join(lines))
if found:
    metrics |= inside({"pI": float(found[1]), "pI_unfolded": float(found[2])})
    if "pI" not in metrics:
        print("molrun:warning There is no isoelectric point between pH 0 and 14: all ionizable groups are acids, or all are bases.", flush=True)
found = re.search(r"The pH of optimum stability is\s+(\S+)", "\n".join(lines))
if found:
    metrics |= inside({"optimum_pH": float(found[1])})
(out / "metrics.json").write_text(json.dumps(metrics))
