"""Ranks the samples of Chai-1: ranked.csv, best.cif and metrics.json."""
import csv
import json
import pathlib
import shutil
import sys

import numpy

out = pathlib.Path(sys.argv[1])
rows = []
for file in out.glob("scores.model_idx_*.npz"):
    number = int(file.stem.rpartition("_")[2])
    with numpy.load(file) as scores:
        rows.append([number, *(float(numpy.ravel(scores[name])[0]) for name in ("aggregate_score", "ptm", "iptm"))])
if not rows:
    sys.exit("molrun: Chai-1 has written no scores.")
rows.sort(key=lambda row: -row[1])
with open(out / "ranked.csv", "w", newline="", encoding="utf-8") as f:
    csv.writer(f).writerows([["sample", "score", "ptm", "iptm"], *rows])
shutil.copyfile(out / f"pred.model_idx_{rows[0][0]}.cif", out / "best.cif")
(out / "metrics.json").write_text(json.dumps(dict(zip(("score", "ptm", "iptm"), rows[0][1:]))))
