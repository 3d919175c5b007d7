"""Writes the single molecule of a file as XYZ if it can be computed: it must have numeric
coordinates, known elements, all hydrogens, no overlapping atoms, and a number of unpaired
electrons that fits its charge.

  molecule.py SOURCE TARGET CHARGE UNPAIRED"""
import math
import pathlib
import re
import subprocess
import sys

source, target, charge, unpaired = *map(pathlib.Path, sys.argv[1:3]), *map(int, sys.argv[3:])
given, source = source, target.with_name("given" + source.suffix)
source.write_text(given.read_text(encoding="utf-8-sig", errors="replace"), encoding="utf-8")  # Open Babel does not handle byte order marks
ELEMENTS = """H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr
Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu
Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn""".split()
NEAREST = 0.4  # Å
MOST = 2000


def refuse(sentence):
    sys.exit("molrun: " + sentence)


def converted(*options):
    """The molecules of an XYZ file, each a list of atoms."""
    done = subprocess.run(["obabel", str(source), "-oxyz", *options], capture_output=True, text=True, errors="replace", check=False)
    print(done.stderr, flush=True)
    lines, molecules = done.stdout.splitlines(), []
    while lines and lines[0].strip().isdigit():
        n = int(lines[0])
        molecules.append([line.split() for line in lines[2:2 + n]])
        lines = lines[2 + n:]
    return [atoms for atoms in molecules if atoms]


def place(atom):
    try:
        p = tuple(float(word) for word in atom[1:4])
    except ValueError:
        p = ()
    if len(p) != 3 or not all(map(math.isfinite, p)):
        refuse("An atom of the molecule has no coordinates: " + " ".join(atom)[:60])
    return p


molecules = converted()
if not molecules:
    refuse("No molecule in the file can be read: check that its content matches its extension.")
if len(molecules) > 1:
    refuse(f"The file has {len(molecules)} molecules: submit one job for each.")
(atoms,) = molecules
if len(atoms) > MOST:
    refuse(f"The molecule has {len(atoms)} atoms; at most {MOST} can be computed.")
for atom in atoms:
    if atom[0] not in ELEMENTS:
        refuse("The molecule has an atom that is not an element from H to Rn: " + " ".join(atom)[:60])
places = [place(atom) for atom in atoms]
if len(places) > 1 and not any(any(p) for p in places):
    refuse("The molecule has no coordinates: generate them with the type conformers.")
for i, p in enumerate(places):
    for k in range(i):
        if math.dist(p, places[k]) < NEAREST:
            refuse(f"Atoms {k + 1} and {i + 1} of the molecule are less than {NEAREST} Å apart: it needs 3D coordinates, which the type conformers generates.")
if source.suffix in (".sdf", ".mol"):  # bonds reveal missing hydrogens
    lacking = len(converted("-h")[0]) - len(atoms)
    if lacking > 0:
        refuse(f"The molecule lacks {lacking} hydrogens: add them, for example with the type convert.")
    if len(places) > 3 and not any(p[2] for p in places) and any(atom[0] == "H" for atom in atoms) and re.search(r"(?m)^.{20}2D", "\n".join(source.read_text(errors="replace").splitlines()[:2])):
        refuse("The molecule has 2D coordinates: it needs 3D coordinates, which the type conformers generates.")
electrons = sum(ELEMENTS.index(atom[0]) + 1 for atom in atoms) - charge
if electrons < max(1, unpaired):
    refuse(f"The molecule would have {electrons} electrons, {unpaired} of them unpaired: check the charge.")
if electrons % 2 != unpaired % 2:
    fitting = "1, 3, ... unpaired electrons (multiplicity 2, 4, ...)" if electrons % 2 else "0, 2, ... unpaired electrons (multiplicity 1, 3, ...)"
    refuse(f"Charge and unpaired electrons do not fit: with this charge the molecule has {electrons} electrons, so it can have {fitting}")
target.write_text(f"{len(atoms)}\n\n" + "".join(f"{atom[0]} {p[0]:.8f} {p[1]:.8f} {p[2]:.8f}\n" for atom, p in zip(atoms, places)))
