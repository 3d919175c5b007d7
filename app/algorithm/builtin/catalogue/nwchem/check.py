"""Fails if a report of NWChem has no meaningful result: an input without a task succeeds, and
an atom of an unknown element is treated as one without nucleus and electrons."""
import pathlib
import re
import sys

text = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8", errors="replace")
for tag in re.findall(r"(?m)^ +\d+ (\S+) +0\.0000(?: +-?\d+\.\d{8}){3}$", text):
    if not tag.lower().startswith(("bq", "x-")):  # ghost atoms are intended
        sys.exit(f"molrun: NWChem does not know the atom {tag}, and left out its electrons: write element symbols as in the periodic table.")
if not re.search(r"(?m)^[ *]*NWChem ([A-HJ-Z]|I[a-mo-z])", text):
    sys.exit("molrun: NWChem ended without computing anything: the input needs a task, such as: task scf energy.")
if re.search(r"(?mi)^.*energy.*\bnan\b", text):
    sys.exit("molrun: An energy is not a number: check the geometry.")
