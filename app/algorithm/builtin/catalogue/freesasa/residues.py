"""Converts the JSON output of FreeSASA to residues.csv and metrics.json."""
import csv
import json
import pathlib
import sys

source, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
rows = []
for structure in json.loads(source.read_text(encoding="utf-8"))["results"][0]["structure"]:
    for chain in structure["chains"]:
        for residue in chain["residues"]:
            area, relative = residue["area"], residue.get("relative-area", {}).get("total")
            rows.append({
                "index": len(rows) + 1, "chain": chain["label"].strip(), "number": residue["number"].strip(), "residue": residue["name"].strip(),
                "total_A2": area["total"], "polar_A2": area["polar"], "apolar_A2": area["apolar"], "side_chain_A2": area["side-chain"],
                "relative_percent": relative,
            })
if not rows:
    sys.exit("no residue with a surface")

with open(out / "residues.csv", "w", newline="", encoding="utf-8") as f:
    table = csv.DictWriter(f, rows[0])
    table.writeheader()
    for row in rows:
        table.writerow({name: round(value, 2) if isinstance(value, float) else value for name, value in row.items()})

metrics = {name: round(sum(row[name] for row in rows), 2) for name in ("total_A2", "polar_A2", "apolar_A2")}
metrics["residues"] = len(rows)
known = [row["relative_percent"] for row in rows if row["relative_percent"] is not None]
if known:
    metrics["buried"] = sum(value < 20 for value in known)
(out / "metrics.json").write_text(json.dumps(metrics))
