"""Runs PLIP on a complex, or on a receptor with each pose of a file of ligands, and tabulates its reports:
interactions.csv, sites.csv, complex.pdb, report.txt and metrics.json.

  interactions.py RECEPTOR OUT SETTINGS [POSES]"""
import csv
import json
import math
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as xml

from poses import check_places, refuse, split

receptor, out, settings, *given = sys.argv[1:]
out, settings = pathlib.Path(out), json.loads(pathlib.Path(settings).read_text(encoding="utf-8"))
NEAR = 7.5  # Å, within which PLIP counts residues as the binding site
TITLES = {
    "hydrophobic_interaction": "hydrophobic", "hydrogen_bond": "hydrogen bond", "water_bridge": "water bridge", "salt_bridge": "salt bridge",
    "pi_stack": "pi stacking", "pi_cation_interaction": "pi-cation", "halogen_bond": "halogen bond", "metal_complex": "metal",
}
DISTANCES = ("dist", "dist_d-a", "centdist", "dist_d-w")  # each type has one of these
ANGLES = ("don_angle", "angle")


def warn(sentence):
    print("molrun:warning " + sentence)


def is_atom(line):
    return line.startswith(("ATOM", "HETATM"))


def place(line):
    return tuple(float(line[k:k + 8]) for k in (30, 38, 46))


def blocks():
    """The atoms of each pose as PDB lines."""
    for file in split(given[0]):
        done = subprocess.run(["obabel", str(file), "-opdb"], capture_output=True, text=True, errors="replace", check=False)
        yield [line for line in done.stdout.splitlines() if is_atom(line)]


def complex_of(lines, number):
    """The receptor with a pose as ligand LIG in an unused chain."""
    places = [place(line) for line in lines]
    check_places(number, places)
    if not any(math.dist(p, q) < NEAR for p in places for q in atoms):
        refuse(f"No atom of pose {number} lies within {NEAR} Å of the receptor: provide the receptor that it was docked into, in the same coordinates.")
    chain = next(letter for letter in "ZYXWVUTSRQPONMLKJIHGFEDCBA" if letter not in chains)
    serial, rows = len(base), []
    for k, line in enumerate(lines, 1):
        element = line[76:78].strip()
        rows.append(f"HETATM{(serial + k) % 100000:5d} {(element + str(k))[:4]:<4} LIG {chain}   1    {line[30:54]}  1.00  0.00          {element:>2}\n")
    return "".join(base) + "TER\n" + "".join(rows) + "END\n"


def analysed(number):
    """The binding sites in PLIP's report of a complex."""
    folder = pathlib.Path(f"pose{number}")
    folder.mkdir()
    file = folder / "complex.pdb"
    file.write_text(text, encoding="utf-8")
    command = ["plipcmd", "-f", str(file), "-o", str(folder), "-x", "-t", "--name", "report", "--maxthreads", "1", "--nofixfile"]
    if peptides:
        command += ["--peptides", *peptides.split()]
    if settings["nucleic_receptor"]:
        command += ["--dnareceptor"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    report = folder / "report.xml"
    if done.returncode or not report.exists():
        print(done.stderr[-4000:])
        last = [line for line in done.stderr.splitlines() if line.strip()] or ["it printed nothing"]
        refuse(f"PLIP failed: {last[-1][-300:]}")
    with open(out / "report.txt", "a", encoding="utf-8") as target:
        target.write((folder / "report.txt").read_text(encoding="utf-8", errors="replace"))
    return xml.parse(report).getroot().findall("bindingsite")


def value(element, names):
    return next((float(child.text) for name in names for child in element.findall(name) if child.text not in (None, "NA")), "")


with open(receptor, encoding="utf-8") as file:
    base = [line for line in file if is_atom(line) or line.startswith("TER")]
peptides, ligand = settings.get("peptides", ""), settings.get("ligand", "")
chains = {line[21] for line in base if is_atom(line)}
atoms = [place(line) for line in base if is_atom(line)]
if given and peptides:
    refuse("Give poses or chains treated as ligand, not both.")
for chain in peptides.split():
    if chain not in chains:
        refuse(f"There is no chain {chain}; the chains are {', '.join(sorted(chains))}.")
    if chains == set(peptides.split()):
        refuse("All chains are treated as ligand: leave one as the receptor.")

rows, sites, counts, residues = [], [], dict.fromkeys(TITLES.values(), 0), set()
texts = [complex_of(lines, k) for k, lines in enumerate(blocks(), 1)] if given else ["".join(base) + "END\n"]
(out / "complex.pdb").write_text(texts[0], encoding="utf-8")
for number, text in enumerate(texts, 1):
    print(f"molrun:progress {(number - 1) / len(texts):.3f}", flush=True)
    for site in analysed(number):
        name = " ".join(site.findtext("identifiers/" + key, "") for key in ("hetid", "chain", "position"))
        if ligand and not given and site.findtext("identifiers/hetid") != ligand:
            continue
        if given and not name.startswith("LIG "):
            continue
        mine = []
        for element in site.find("interactions").iter():
            if element.tag not in TITLES:
                continue
            partner = [element.findtext(key, "") for key in ("restype", "reschain", "resnr")]
            # PLIP adds hydrogens, so the position of the hydrogen of a donor OH is a guess.
            donor = {"True": "receptor", "False": "ligand"}.get(element.findtext("protisdon", ""), "")
            detail = element.findtext("type") or element.findtext("lig_group") or element.findtext("metal_type") or (donor and f"donor: {donor}")
            mine.append([number, name, TITLES[element.tag], *partner, value(element, DISTANCES), value(element, ANGLES), element.findtext("sidechain", ""), detail or ""])
            if number == 1:
                residues.add(tuple(partner))
        mine.sort(key=lambda row: (row[2], row[4], int(row[5] or 0)))
        rows += mine
        if number == 1:
            for row in mine:
                counts[row[2]] += 1
        sites.append([number, name, site.findtext("identifiers/ligtype"), len(mine), *(sum(row[2] == kind for row in mine) for kind in counts)])
if not sites:
    if ligand and not given:
        refuse(f"PLIP found no ligand {settings['ligand']}. Leave the name empty to analyze all ligands.")
    refuse("PLIP found no ligand: give a structure with one, docked poses, or the chains to treat as ligand. Water and modified amino acids do not count.")
none = [row[1] if not given else f"pose {row[0]}" for row in sites if not row[3]]
if none:
    warn(f"No interactions were found for {', '.join(none[:8])}{f' and {len(none) - 8} more' if len(none) > 8 else ''}.")
with open(out / "interactions.csv", "w", newline="", encoding="utf-8") as target:
    csv.writer(target).writerows([["pose", "ligand", "type", "residue", "chain", "number", "distance_A", "angle_deg", "sidechain", "detail"], *rows])
with open(out / "sites.csv", "w", newline="", encoding="utf-8") as target:
    csv.writer(target).writerows([["pose", "ligand", "kind", "interactions", *(kind.replace(" ", "_") for kind in counts)], *sites])
(out / "metrics.json").write_text(json.dumps({
    "interactions": sum(counts.values()), "hydrogen_bonds": counts["hydrogen bond"], "hydrophobic": counts["hydrophobic"], "salt_bridges": counts["salt bridge"],
    "pi": counts["pi stacking"] + counts["pi-cation"], "residues": len(residues), "sites": sum(row[0] == 1 for row in sites), "poses": len(texts),
}))
