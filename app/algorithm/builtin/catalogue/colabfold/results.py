"""Tabulates ColabFold's models: ranked.csv for all, plddt.csv for the best one. The files are written
by predict_structure in colabfold/batch.py, release 1.6.2."""
import csv
import json
import pathlib
import re
import sys

out = pathlib.Path(sys.argv[1])
rows, best = [], None
for file in sorted(out.glob("*_scores_rank_*.json")):
    said = re.search(r"_scores_rank_(\d+)_(.+)_model_(\d+)_seed_(\d+)$", file.stem)
    scores = json.loads(file.read_text())
    if not said or not scores.get("plddt"):
        sys.exit(f"molrun: ColabFold wrote {file.name} in an unknown format.")
    best = best or scores["plddt"]
    mean = round(sum(scores["plddt"]) / len(scores["plddt"]), 2)
    rows.append([int(said[1]), int(said[3]), int(said[4]), mean, scores.get("ptm", ""), scores.get("iptm", ""), said[2]])
if not rows:
    sys.exit("molrun: ColabFold wrote no scores.")
with open(out / "ranked.csv", "w", newline="", encoding="utf-8") as f:
    csv.writer(f).writerows([["rank", "model", "seed", "plddt", "ptm", "iptm", "weights"], *rows])
with open(out / "plddt.csv", "w", newline="", encoding="utf-8") as f:
    csv.writer(f).writerows([["residue", "plddt"], *enumerate(best, 1)])
