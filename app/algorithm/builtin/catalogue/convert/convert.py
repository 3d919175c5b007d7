"""Runs Open Babel and checks its output: it skips molecules that it can't read, and writes
zeros for missing coordinates, both with exit status 0.

  convert.py SOURCE TARGET metrics.json [OPTION...]"""
import json
import math
import pathlib
import re
import subprocess
import sys

source, target, metrics, *options = sys.argv[1:]
source, target = pathlib.Path(source), pathlib.Path(target)
RECORDS = {  # start or end of a molecule, by format
    ".smi": r"(?m)^[ \t]*[^\s#]", ".inchi": r"(?m)^[ \t]*InChI=", ".sdf": r"(?m)^\$\$\$\$", ".mol2": r"(?m)^@<TRIPOS>MOLECULE",
}
ATOMS = {  # the coordinates of an atom, for formats without anything else
    ".xyz": r"(?m)^ *[A-Z*][a-z]? +(\S+) +(\S+) +(\S+)$", ".pdb": r"(?m)^(?:ATOM  |HETATM).{24}(.{8})(.{8})(.{8})", ".pdbqt": r"(?m)^(?:ATOM  |HETATM).{24}(.{8})(.{8})(.{8})",
}


def refuse(sentence):
    sys.exit("molrun: " + sentence)


def number(text):
    try:
        return float(text)
    except ValueError:
        return math.nan


done = subprocess.run(["obabel", str(source), "-O", str(target), "-e", *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
print(done.stdout[-20_000:])
found = re.findall(r"(?m)^(\d+) molecules? converted", done.stdout)
converted = int(found[-1]) if found else 0
if done.returncode or converted == 0 or not target.exists() or target.stat().st_size == 0:
    refuse("Open Babel found no molecule in the file: check that its content matches its extension.")
given = source.read_text(encoding="utf-8", errors="replace")
records = max(converted, len(re.findall(RECORDS[source.suffix], given))) if source.suffix in RECORDS else converted

written = target.read_text(encoding="utf-8", errors="replace")
if re.search(r"(?i)\s-?(nan|inf)\b", written) and target.suffix not in (".smi", ".inchi"):
    refuse("A molecule has coordinates that are not numbers: look for nan or inf in the file.")
if target.suffix in ATOMS:
    places = [tuple(map(number, atom)) for atom in re.findall(ATOMS[target.suffix], written)]
    if not places:
        refuse("The converted molecules have no atoms: check that the content of the file matches its extension.")
    if len(places) > converted and not any(any(place) for place in places):
        refuse(f"The molecules have no coordinates, which {target.suffix[1:]} files need: build 3D coordinates.")
pathlib.Path(metrics).write_text(json.dumps({"molecules": converted, "failed": records - converted}))
