#!/usr/bin/env python3
"""Docks a table of ligands into a protein, as jobs that depend on another job.

  KEY=... [BASE=...] python3 screening.py STRUCTURE.pdb LIGANDS.csv "RESIDUES" FOLDER

One request prepares the structure; another submits a docking for each row of the table
(columns name and smiles), each of which waits for the prepared structure. Writes ranked.csv,
ranked.svg, pose.svg, receptor.pdb and best.sdf into the folder. Needs a server with PDB2PQR and
AutoDock Vina (molrun algorithms list). RESIDUES are the residues around the site, such as
"A:53 A:70"."""
import csv
import pathlib
import sys
import time
import urllib.parse

from draw import bars, pose
from molrun import call, download, upload, wait

structure, table, residues, folder = sys.argv[1:5]
folder = pathlib.Path(folder)
folder.mkdir(parents=True, exist_ok=True)
batch = f"screening-{folder.name}"
prepared = f"prepared-{folder.name}"
with open(table, newline="", encoding="utf-8") as rows:
    ligands = list(csv.DictReader(rows))
call("POST", "/submit-job", {"jobName": prepared, "type": "prepare-structure", "settings": {"structure": upload(structure)}})
call("POST", "/submit-batch", {"batchName": batch, "type": "vina", "settings": [
    {"receptor": f"job:{prepared}/prepared.pdb", "smiles": row["smiles"], "residues": residues, "exhaustiveness": 4, "modes": 3} for row in ligands
]})
wait(prepared)
while True:
    counts = call("GET", f"/jobs/{urllib.parse.quote(batch)}/table?limit=1")["statuses"]
    print("\r" + ", ".join(f"{n} {state.lower()}" for state, n in counts.items()).ljust(78), end="", file=sys.stderr, flush=True)
    if counts["QUEUED"] + counts["RUNNING"] == 0:
        break
    time.sleep(5)
print(file=sys.stderr)

names = {row["smiles"]: row["name"] for row in ligands}
rows, start = [], ""
while True:
    page = call("GET", f"/jobs/{urllib.parse.quote(batch)}/table?sort=metric:affinity&order=asc&limit=100{start}")
    rows += page["rows"]
    if not page.get("startKey"):
        break
    start = "&startKey=" + urllib.parse.quote(page["startKey"])
ranked = [(names[row["settings"]["smiles"]], (row.get("metrics") or {}).get("affinity"), row["jobName"]) for row in rows]
ranked = sorted((r for r in ranked if r[1] is not None), key=lambda r: r[1]) + [r for r in ranked if r[1] is None]
with open(folder / "ranked.csv", "w", newline="", encoding="utf-8") as out:
    csv.writer(out).writerows([["rank", "name", "affinity_kcal_mol", "job"], *([k, *row] for k, row in enumerate(ranked, 1))])

if ranked[0][1] is None:
    failure = call("GET", f"/jobs/{urllib.parse.quote(ranked[0][2])}").get("failure") or {}
    sys.exit(f"No ligand could be docked. {ranked[0][0]}: {failure.get('message', 'it binds nowhere')}")
bars([(name, value) for name, value, _ in ranked if value is not None], folder / "ranked.svg", "Estimated affinity (kcal/mol)")
download(ranked[0][2], "best.sdf", folder / "best.sdf")
download(ranked[0][2], "receptor.pdb", folder / "receptor.pdb")
pose(folder / "receptor.pdb", folder / "best.sdf", folder / "pose.svg", f"{ranked[0][0]}, {ranked[0][1]:.1f} kcal/mol")
for k, (name, value, _) in enumerate(ranked[:10], 1):
    print(f"{k:3} {name:24} {value}")
