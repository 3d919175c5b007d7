"""Has Chai-1 make its form of alignments out of A3M files: its command merges those of a folder,
which are of one chain, into a file that is named after the chain's sequence."""
import pathlib
import subprocess
import sys

program, source, target = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
folders = sorted(source.iterdir())
for folder in folders:
    if subprocess.run([program, "a3m-to-pqt", str(folder), "--output-directory", str(target)], check=False).returncode:
        sys.exit(f"molrun: Chai-1 can't read the alignment of chain {folder.name}.")
if len(list(target.glob("*.aligned.pqt"))) != len(folders):
    sys.exit("molrun: Chai-1 has not taken every alignment.")
