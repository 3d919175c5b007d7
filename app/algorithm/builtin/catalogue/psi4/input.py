"""Writes the input of Psi4 for a molecule in an XYZ file. Every word in it is checked
against known values, since Psi4 runs its input as Python."""
import json
import pathlib
import re
import sys

options, molecule, target = map(pathlib.Path, sys.argv[1:])
o = json.loads(options.read_text())
lines = molecule.read_text(encoding="utf-8", errors="replace").splitlines()
atoms = []
for line in lines[2:2 + int(lines[0])]:
    words = line.split()
    if len(words) < 4 or not re.fullmatch(r"[A-Z][a-z]?", words[0]):
        sys.exit("molrun: The molecule has an atom that is not an element: " + line.strip()[:40])
    atoms.append((words[0], *(float(word) for word in words[1:4])))
if not atoms:
    sys.exit("molrun: The molecule has no atoms.")
if len(atoms) > 1 and not any(any(a[1:]) for a in atoms):
    sys.exit("molrun: The molecule has no coordinates: generate them with the type conformers.")
method, basis = o["method"], o["basis"]
for word in (method, basis, o["task"]):
    if not re.fullmatch(r"[a-z0-9*+()-]+", word):
        sys.exit("molrun: The method, basis or task is unknown.")
body = "\n".join(f"{a[0]} {a[1]:.8f} {a[2]:.8f} {a[3]:.8f}" for a in atoms)
call = {"energy": "energy", "optimize": "optimize", "vibrations": "frequency"}[o["task"]]
reference = ("uhf" if o["multiplicity"] > 1 else "rhf") if method in ("hf", "mp2", "ccsd", "ccsd(t)") else ("uks" if o["multiplicity"] > 1 else "rks")
target.write_text(f"""import json
memory {int(o["megabytes"])} mb
molecule m {{
{int(o["charge"])} {int(o["multiplicity"])}
{body}
}}
set {{
basis {basis}
reference {reference}
geom_maxiter 200
}}
e, wfn = {call}("{method}", return_wfn=True)
results = {{"energy_Eh": e}}
d = [variable("SCF DIPOLE " + axis) for axis in "XYZ"]
results["dipole_D"] = sum(v * v for v in d) ** 0.5
if "{call}" == "frequency":
    f = wfn.frequencies().to_array()
    results["lowest_frequency"], results["imaginary"] = float(min(f)), int(sum(v < 0 for v in f))
    with open("frequencies.csv", "w") as table:
        table.write("mode,frequency\\n" + "".join("%d,%.2f\\n" % (k, v) for k, v in enumerate(f, 1)))
m.save_xyz_file("final.xyz", True)
with open("results.json", "w") as out:
    json.dump(results, out)
""")
