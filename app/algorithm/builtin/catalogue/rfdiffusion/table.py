"""Lists the backbones of RFdiffusion: designs.csv and metrics.json."""
import csv
import json
import pathlib
import sys

out = pathlib.Path(sys.argv[1])
rows = []
for file in sorted(out.glob("design_*.pdb"), key=lambda f: (len(f.name), f.name)):
    places = [[float(line[k:k + 8]) for k in (30, 38, 46)] for line in file.read_text().splitlines() if line.startswith("ATOM") and line[12:16] == " CA "]
    if not places:
        sys.exit(f"molrun: The design {file.name} has no alpha carbons.")
    centre = [sum(p[k] for p in places) / len(places) for k in range(3)]
    rg = (sum((p[k] - centre[k]) ** 2 for p in places for k in range(3)) / len(places)) ** 0.5
    rows.append([file.stem, len(places), round(rg, 2), file.name])
with open(out / "designs.csv", "w", newline="", encoding="utf-8") as f:
    csv.writer(f).writerows([["name", "residues", "rg_A", "file"], *rows])
(out / "metrics.json").write_text(json.dumps({"designs": len(rows), "mean_length": sum(r[1] for r in rows) / len(rows), "mean_rg_A": round(sum(r[2] for r in rows) / len(rows), 3)}))
