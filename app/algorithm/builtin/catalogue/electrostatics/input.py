"""Writes the input of APBS: the grid chosen by PDB2PQR, with salt, and a second calculation
without water and salt, so that the difference is the solvation energy.

Fails if residues of the structure have no charges."""
import pathlib
import re
import sys

from gaps import warn

auto, structure, pqr, salt, temperature, interior, target = sys.argv[1:]


def residues(path):
    found = {}
    for line in pathlib.Path(path).read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith(("ATOM", "HETATM")):
            found[line[21].strip(), line[22:27].strip()] = line[17:20].strip()
    return found


before, after = residues(structure), residues(pqr)
lost = [f"{name} {key[1]} of chain {key[0] or '(no name)'}" for key, name in before.items() if key not in after]
if lost:
    sys.exit("left out: " + ", ".join(lost[:10]) + (f" and {len(lost) - 10} more" if len(lost) > 10 else ""))

warn(structure, "the potential lacks the charges of the missing residues.")
grid = "".join(f"    {line.strip()}\n" for line in pathlib.Path(auto).read_text().splitlines() if re.match(r"\s*(dime|cglen|fglen|cgcent|fgcent)\b", line))
common = f"""    mg-auto
{grid}    mol 1
    lpbe
    bcfl sdh
    pdie {interior}
    srfm smol
    chgm spl2
    sdens 10.00
    srad 1.40
    swin 0.30
    temp {temperature}
    calcenergy total
    calcforce no
"""
ions = f"    ion charge 1 conc {salt} radius 2.0\n    ion charge -1 conc {salt} radius 1.8\n" if float(salt) > 0 else ""
pathlib.Path(target).write_text(f"""read
    mol pqr molecule.pqr
end
elec name water
{common}    sdie 78.54
{ions}    write pot dx potential
end
elec name vacuum
{common}    sdie {interior}
end
print elecEnergy water - vacuum end
quit
""")
