"""Reads trajectories with a library independent of the program that wrote them.

usage: read_trajectory.py mdtraj|mdanalysis

Each line on standard input names files to read, as JSON: {"topology": "top.pdb",
"trajectory": "traj.dcd"}, or the topology alone if it holds the frames. Each is
answered with one line on standard output: what the library read, in angstroms and
picoseconds, or why it could not read them.
"""

import json
import os
import sys
import warnings


def read_mdtraj(files):
    import mdtraj

    if "trajectory" in files:
        t = mdtraj.load(files["trajectory"], top=files["topology"])
    else:
        t = mdtraj.load(files["topology"])
    return {
        "residues": [r.name for r in t.topology.residues],
        "bonds": sorted(sorted((b[0].index, b[1].index)) for b in t.topology.bonds),
        "frames": (t.xyz.astype(float) * 10).round(4).tolist(),
    }


def read_mdanalysis(files):
    import MDAnalysis

    u = MDAnalysis.Universe(files["topology"], *[files[k] for k in ["trajectory"] if k in files])
    frames, times = [], []
    for step in u.trajectory:
        frames.append(step.positions.astype(float).round(4).tolist())
        times.append(float(step.time))
    answer = {
        "residues": u.residues.resnames.tolist(),
        "bonds": sorted(sorted(map(int, b)) for b in u.bonds.indices),
        "frames": frames,
    }
    if "trajectory" in files:
        answer |= {"times": times, "spacing": float(u.trajectory.dt)}
    return answer


def main():
    # The libraries and the C code below them may print: that goes elsewhere.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    read = {"mdtraj": read_mdtraj, "mdanalysis": read_mdanalysis}[sys.argv[1]]
    for line in sys.stdin:
        try:
            answer = read(json.loads(line))
        except Exception as failure:
            answer = {"error": f"{type(failure).__name__}: {failure}"}
        print(json.dumps(answer), file=out, flush=True)


main()
