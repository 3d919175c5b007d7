"""Writes structures as PDB files for the program: proteins without ligands, under the names
that the user gave."""
import pathlib
import subprocess
import sys

molrun, target, *files = sys.argv[1:]
pathlib.Path(target).mkdir()
for file in map(pathlib.Path, files):
    stem = pathlib.Path(file.name.removesuffix(".gz")).stem
    done = subprocess.run([molrun, "engine", "pdb", "--structure", str(file), "--no-hetero", "--no-hydrogens", "--out", f"{target}/{stem}.pdb"], stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1].split("the structure ")[-1]
        sys.exit(f"molrun: The structure {file.name} {reason}.")
