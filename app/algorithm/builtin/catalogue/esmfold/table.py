"""Lists the sequences with the confidence of their structures: structures.csv and metrics.json. A
sequence without a structure gets a note: esm-fold skips sequences that do not fit in GPU memory."""
import csv
import json
import pathlib
import re
import sys

names, said, out = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
ptm = dict(re.findall(r"Predicted structure for (\S+) with length \d+, pLDDT [\d.]+, pTM ([\d.]+)", said.read_text(encoding="utf-8", errors="replace")))
rows, missing = [], []
with open(names, newline="", encoding="utf-8") as lines:
    for name, header, residues, unknown in csv.reader(lines):
        file = out / f"{name}.pdb"
        if not file.exists():
            missing.append([name, residues, "", "", unknown, header, "", "no structure: not enough GPU memory"])
            print(f"No structure of {name} ({residues} residues): not enough GPU memory.", flush=True)
            continue
        values = [float(line[60:66]) for line in file.read_text().splitlines() if line.startswith("ATOM") and line[12:16] == " CA "]
        if not int(residues) - int(unknown) <= len(values) <= int(residues):
            sys.exit(f"molrun: The structure {file.name} has {len(values)} residues, but its sequence has {residues}.")
        rows.append([name, residues, round(sum(values) / len(values), 2), ptm.get(name, ""), unknown, header, file.name, ""])
rows.sort(key=lambda row: -row[2])
with open(out / "structures.csv", "w", newline="", encoding="utf-8") as f:
    csv.writer(f).writerows([["name", "residues", "plddt", "ptm", "unknown", "header", "file", "note"], *rows, *missing])
figures = {"structures": len(rows), "missing": len(missing), "plddt": round(sum(row[2] for row in rows) / len(rows), 2)}
if all(row[3] for row in rows):
    figures["ptm"] = round(sum(float(row[3]) for row in rows) / len(rows), 3)
(out / "metrics.json").write_text(json.dumps(figures))
