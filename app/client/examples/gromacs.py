#!/usr/bin/env python3
"""Simulates lysozyme in water for 20 ps and plots the results.

  KEY=... [BASE=...] python3 gromacs.py STRUCTURE.pdb FOLDER [CORES]

Writes rmsd.svg, gyration.svg, fluctuation.svg, trajectory.xtc, protein.pdb and final.pdb
into the folder. Needs a server with GROMACS (molrun algorithms list)."""
import pathlib
import sys
import urllib.parse

from draw import plot
from molrun import call, download, upload, wait

structure, folder = sys.argv[1], pathlib.Path(sys.argv[2])
cores = int(sys.argv[3]) if len(sys.argv) > 3 else 2
folder.mkdir(parents=True, exist_ok=True)
name = f"lysozyme-{folder.name}"
call("POST", "/submit-job", {"jobName": name, "type": "gromacs", "settings": {
    "structure": upload(structure), "ns": 0.02, "equilibration_ps": 5, "minimization": 500, "padding": 0.8, "frames": 200, "cores": cores,
}})
job = wait(name)
for view, title, x, y in (("rmsd", "Backbone RMSD from the start", "time (ps)", "RMSD (nm)"),
                          ("gyration", "Radius of gyration", "time (ps)", "radius (nm)"),
                          ("fluctuation", "Fluctuation of residues", "residue", "RMSF (nm)")):
    axis, values = call("GET", f"/jobs/{urllib.parse.quote(name)}/series/{view}")["values"][:2]
    plot([pair for pair in zip(axis, values) if None not in pair], folder / f"{view}.svg", title, x, y)
for file in ("trajectory.xtc", "protein.pdb", "final.pdb"):
    download(name, file, folder / file)
for metric, value in sorted(job["metrics"]["results"].items()):
    print(f"{metric:16} {value}")
