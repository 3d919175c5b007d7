"""Checks which residues ProteinMPNN can design, and writes its input besides the structure:
fixed.jsonl, tied.jsonl, bias.jsonl and, for scoring, candidates.fasta. ProteinMPNN counts the
residues of a chain from 1, including one for each number missing from the structure."""
import json
import pathlib
import sys

import fasta
import residues

settings, structure, work, candidates = json.load(open(sys.argv[1])), sys.argv[2], pathlib.Path(sys.argv[3]), sys.argv[4:]
ONE = dict(zip("ALA ARG ASN ASP CYS GLN GLU GLY HIS ILE LEU LYS MET PHE PRO SER THR TRP TYR VAL".split(), "ARNDCQEGHILKMFPSTWYV"))
BACKBONE = {"CA"} if settings["model"] == "ca" else {"N", "CA", "C", "O"}


def stop(text):
    sys.exit("molrun: " + text)


chains = {}  # by chain, then by number and insertion code: residue name and atoms
with open(structure, encoding="utf-8") as lines:
    for line in lines:
        if line.startswith("ATOM"):
            _, atoms = chains.setdefault(line[21], {}).setdefault((int(line[22:26]), line[26].strip()), (line[17:20], set()))
            atoms.add(line[12:16].strip())
if " " in chains:
    stop("A chain of the structure has no letter: assign one.")
given = (settings.get("chains") or " ".join(chains)).split()
for chain in given:
    if chain not in chains:
        stop(f"The structure has no chain {chain}: its chains are {', '.join(chains)}.")
    if given.count(chain) > 1:
        stop(f"Chain {chain} is named twice.")
designed = sorted(given)


def places(chain):
    """The residues of a chain as ProteinMPNN counts them, None for a missing number."""
    numbers = sorted(chains[chain])
    by = {}
    for number, code in numbers:
        by.setdefault(number, []).append((number, code))
    return [place for number in range(numbers[0][0], numbers[-1][0] + 1) for place in by.get(number, [None])]


order = {chain: places(chain) for chain in chains}


everything = {(chain, place) for chain in designed for place in chains[chain]}
fixed = set()
if settings.get("fixed"):
    fixed = residues.choose(settings["fixed"], chains)
if settings.get("redesign"):
    only = residues.choose(settings["redesign"], chains)
    for chain, (number, code) in sorted(only - everything):
        stop(f"{chain}{number}{code} is to be designed, but its chain is not among the chains to design.")
    fixed = everything - only
cut = {(chain, place) for chain, place in everything if not BACKBONE <= chains[chain][place][1]}
label = lambda places: ", ".join(f"{chain}{number}{code}" for chain, (number, code) in sorted(places))
if cut == everything and BACKBONE != {"CA"} and all("CA" in chains[chain][place][1] for chain, place in everything):
    stop("The structure has only alpha carbons: choose the model ca.")
if settings.get("tied"):
    if len(designed) < 2:
        stop("Identical chains need at least two chains to design.")
    for chain in designed[1:]:
        if order[chain] != order[designed[0]]:
            stop(f"Chains {designed[0]} and {chain} do not have the same residue numbers, so they can't get the same sequence.")
    if cut:
        stop(f"Identical chains need complete backbones, which these residues lack: {label(cut)}.")
    places_fixed = {place for chain, place in fixed}
    for place in sorted(places_fixed):
        if len({chains[chain][place][0] for chain in designed}) > 1:
            stop(f"The chains do not have the same residue at {place[0]}{place[1]}, which is to be kept.")
    fixed = {(chain, place) for chain in designed for place in places_fixed}
if everything <= fixed | cut:
    stop("No residue is left to design: " + ("each is kept or lacks backbone atoms." if fixed else "each lacks backbone atoms."))
if cut - fixed:
    print(f"These residues lack backbone atoms and are kept unchanged: {label(cut - fixed)}.")
gaps = sum(place is None for chain in designed for place in order[chain])
if gaps:
    print(f"{gaps} residues missing from the structure appear as X in the sequences.")


def write(name, value):
    (work / name).write_text(json.dumps(value) + "\n")


if fixed:
    write("fixed.jsonl", {"backbone": {chain: [k for k, place in enumerate(order[chain], 1) if (chain, place) in fixed] for chain in chains}})
if settings.get("tied"):
    write("tied.jsonl", {"backbone": [{chain: [k] for chain in designed} for k in range(1, len(order[designed[0]]) + 1)]})
if settings.get("bias"):
    write("bias.jsonl", {word[0]: float(word[2:]) for word in settings["bias"].split()})
if candidates:
    slots = [place for chain in designed for place in order[chain]]
    with open(work / "candidates.fasta", "w", encoding="utf-8") as out:
        for k, (name, sequence) in enumerate(fasta.records(candidates[0], bare=True), 1):
            letters = sequence.upper().rstrip("*")
            strange = sorted(set(letters) - set("ACDEFGHIKLMNPQRSTVWYX"))
            if strange:
                stop(f"Sequence {name or k} contains {strange[0]}, which ProteinMPNN does not know.")
            if len(letters) == len(slots) - gaps:  # without the residues missing from the structure
                rest = iter(letters)
                letters = "".join("X" if place is None else next(rest) for place in slots)
            if len(letters) != len(slots):
                stop(f"Sequence {name or k} has {len(letters)} residues, but the chains {' '.join(designed)} have {len(slots) - gaps}.")
            out.write(f">{name}\n{letters}\n")
