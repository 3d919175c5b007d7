"""Tabulates Boltz's samples: ranked.csv for all, and for the best one the errors (pae.csv) and the
confidence of each residue and atom (plddt.csv). It needs only NumPy, which Boltz has. The files are
written by src/boltz/data/write/writer.py of jwohlwend/boltz 2.2.0."""
import csv
import json
import pathlib
import sys

import numpy

out, asked = pathlib.Path(sys.argv[1]), sys.argv[2]
rows = []
for file in out.glob("confidence_complex_model_*.json"):
    scores = json.loads(file.read_text())
    # For a single chain, the interface score is a meaningless 0.
    iptm = round(scores["iptm"], 4) if len(scores["chains_ptm"]) > 1 else ""
    rows.append([int(file.stem.rpartition("_")[2]), round(scores["confidence_score"], 4), round(100 * scores["complex_plddt"], 2), round(scores["ptm"], 4), iptm])
rows.sort()
with open(out / "ranked.csv", "w", newline="", encoding="utf-8") as f:
    csv.writer(f).writerows([["model", "confidence", "plddt", "ptm", "iptm"], *rows])
with numpy.load(out / "plddt_complex_model_0.npz") as arrays:
    plddt = numpy.ravel(arrays["plddt"])
with open(out / "plddt.csv", "w", newline="", encoding="utf-8") as f:
    csv.writer(f).writerows([["token", "plddt"], *([k, round(100 * float(v), 2)] for k, v in enumerate(plddt, 1))])
with numpy.load(out / "pae_complex_model_0.npz") as arrays:
    numpy.savetxt(out / "pae.csv", arrays["pae"], fmt="%.1f", delimiter=",")
figures = {"iptm": rows[0][4]} if rows[0][4] != "" else {}
if asked == "affinity" and not (out / "affinity_complex.json").exists():
    figures["affinity_missing"] = "not computed: the GPU did not have enough memory"
(out / "metrics.json").write_text(json.dumps(figures))
