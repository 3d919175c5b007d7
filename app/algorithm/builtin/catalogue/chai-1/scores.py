"""Ranks the samples of Chai-1: ranked.csv, best.cif and metrics.json. The arrays come
from get_scores in chai_lab/ranking/rank.py, 0.6.1."""
import csv
import json
import pathlib
import shutil
import sys

import numpy

out, asked = pathlib.Path(sys.argv[1]), int(sys.argv[2])
rows = []
for file in out.glob("scores.model_idx_*.npz"):
    with numpy.load(file) as scores:
        score, ptm, iptm = (float(numpy.ravel(scores[name])[0]) for name in ("aggregate_score", "ptm", "iptm"))
        chains, clash = numpy.size(scores["per_chain_ptm"]), bool(numpy.any(scores["has_inter_chain_clashes"]))
    if chains != asked:
        sys.exit(f"molrun: Chai-1 predicted only {chains} of the {asked} chains and ligands.")
    # For a single chain, the interface score is a meaningless 0.
    rows.append([int(file.stem.rpartition("_")[2]), round(score, 4), round(ptm, 4), round(iptm, 4) if chains > 1 else "", "yes" if clash else "no"])
if not rows:
    sys.exit("molrun: Chai-1 wrote no scores.")
rows.sort(key=lambda row: -row[1])
columns = ["sample", "score", "ptm", "iptm", "clashes"]
with open(out / "ranked.csv", "w", newline="", encoding="utf-8") as f:
    csv.writer(f).writerows([columns, *rows])
shutil.copyfile(out / f"pred.model_idx_{rows[0][0]}.cif", out / "best.cif")
(out / "metrics.json").write_text(json.dumps({name: value for name, value in zip(columns[1:], rows[0][1:]) if value != ""}))
