"""Lists the backbones of RFdiffusion: designs.csv and metrics.json. Built residues have a B factor
of 0, residues of the structure 1; length and radius refer to the chains with built residues."""
import csv
import json
import pathlib
import re
import sys

out = pathlib.Path(sys.argv[1])
rows = []
for file in sorted(out.glob("design_*.pdb"), key=lambda f: int(re.findall(r"\d+", f.stem)[-1])):
    chains = {}
    for line in file.read_text().splitlines():
        if line.startswith("ATOM") and line[12:16] == " CA ":
            chains.setdefault(line[21], []).append(([float(line[k:k + 8]) for k in (30, 38, 46)], float(line[60:66]) == 0))
    places = [place for chain in chains.values() if any(built for _, built in chain) for place, _ in chain]
    if not places:
        sys.exit(f"molrun: Nothing was built in the design {file.name}.")
    centre = [sum(p[k] for p in places) / len(places) for k in range(3)]
    rg = (sum((p[k] - centre[k]) ** 2 for p in places for k in range(3)) / len(places)) ** 0.5
    built = sum(built for chain in chains.values() for _, built in chain)
    rows.append([file.stem, len(places), built, sum(map(len, chains.values())), len(chains), round(rg, 2), file.name])
with open(out / "designs.csv", "w", newline="", encoding="utf-8") as f:
    csv.writer(f).writerows([["name", "length", "built", "residues", "chains", "rg_A", "file"], *rows])
(out / "metrics.json").write_text(json.dumps({"designs": len(rows), "mean_length": sum(r[1] for r in rows) / len(rows), "mean_rg_A": round(sum(r[5] for r in rows) / len(rows), 3)}))
