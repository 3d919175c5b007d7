"""Converts A3M files to Chai-1's alignment format with its own command, which merges the files of a
folder (one chain) into a file named after the chain's sequence."""
import pathlib
import subprocess
import sys

program, source, target = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
folders = sorted(source.iterdir())
for folder in folders:
    if subprocess.run([program, "a3m-to-pqt", str(folder), "--output-directory", str(target)], check=False).returncode:
        sys.exit(f"molrun: Chai-1 can't read the alignment of chain {folder.name}.")
if len(list(target.glob("*.aligned.pqt"))) != len(folders):
    sys.exit("molrun: Chai-1 did not convert every alignment.")
