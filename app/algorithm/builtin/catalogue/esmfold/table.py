"""Lists the structures of ESMFold with their mean pLDDT: structures.csv and metrics.json."""
import csv
import json
import pathlib
import sys

fasta, out = sys.argv[1], pathlib.Path(sys.argv[2])
with open(fasta, encoding="utf-8") as lines:
    asked = sum(line.startswith(">") for line in lines)
rows = []
for file in sorted(out.glob("*.pdb")):
    values = [float(line[60:66]) for line in file.read_text().splitlines() if line.startswith("ATOM") and line[12:16] == " CA "]
    if not values:
        sys.exit(f"molrun: The structure {file.name} has no alpha carbons.")
    mean = sum(values) / len(values)
    rows.append([file.stem, len(values), round(mean * (100 if max(values) <= 1 else 1), 2), file.name])
rows.sort(key=lambda row: -row[2])
with open(out / "structures.csv", "w", newline="", encoding="utf-8") as f:
    csv.writer(f).writerows([["name", "residues", "plddt", "file"], *rows])
(out / "metrics.json").write_text(json.dumps({"structures": len(rows), "missing": asked - len(rows), "plddt": round(sum(row[2] for row in rows) / len(rows), 2)}))
