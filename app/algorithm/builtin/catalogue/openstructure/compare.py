"""Compares a model with a reference using OpenStructure: scores.csv, residues.csv and metrics.json.

  compare.py MODEL REFERENCE OUT SETTINGS"""
import csv
import json
import pathlib
import subprocess
import sys

model, reference, out, settings = sys.argv[1:]
out, settings = pathlib.Path(out), json.loads(pathlib.Path(settings).read_text(encoding="utf-8"))
LIBRARY = "/var/cache/openstructure/compounds.chemlib"
PROPERTIES = "/usr/share/openstructure/stereo_chemical_props.txt"
SHORT = 20  # residues; OpenStructure skips shorter chains
ALIKE, RELATED = 0.9, 0.5  # fractions of identical residues


def refuse(sentence):
    sys.exit("molrun: " + sentence)


def warn(sentence):
    print("molrun:warning " + sentence)


def chains(path):
    """The number of alpha carbons in each chain."""
    found = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("ATOM") and line[12:16] == " CA ":
                found[line[21]] = found.get(line[21], 0) + 1
    return found


def counted(found, what):
    kept = {chain: n for chain, n in found.items() if n >= SHORT}
    if not kept:
        refuse(f"The {what} has no chain with at least {SHORT} residues, which OpenStructure needs.")
    left_out = sorted(set(found) - set(kept))
    if left_out:
        warn(f"OpenStructure skips chains shorter than {SHORT} residues: {', '.join(left_out)} of the {what}.")
    return kept


ours, theirs = counted(chains(model), "model"), counted(chains(reference), "reference")
command = ["ost-compare-structures", "-m", model, "-r", reference, "-o", "scores.json", "-v", "2", "-cl", LIBRARY, "--molck", "-rm", "hyd", "oxt",
           "--lddt", "--qs-score", "--qs-rmsd", "--save-per-residue-scores", "-ir", str(settings["radius"]), "-ss", str(settings["separation"]),
           "--qs-max-mappings-extensive", "20000"]
command += ["--c-alpha-only"] if settings["alpha_carbons"] else []
command += ["--residue-number-alignment"] if settings["by_numbers"] else []
command += ["--structural-checks", "-p", PROPERTIES] if settings["stereochemistry"] else []
if settings.get("mapping"):
    pairs = [word.split(":") for word in settings["mapping"].split()]
    for theirs_of, ours_of in pairs:
        if theirs_of not in theirs or ours_of not in ours:
            refuse(f"The pair {theirs_of}:{ours_of} names a chain that does not exist: the reference has {', '.join(theirs)}, the model {', '.join(ours)}.")
    command += ["--chain-mapping", *map(":".join, pairs)]
done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
print(done.stdout[-20_000:])
if done.returncode or not pathlib.Path("scores.json").exists():
    last = [line for line in done.stdout.splitlines() if line.strip()] or ["it printed nothing"]
    refuse(f"OpenStructure failed: {last[-1][-300:]}")
result = json.loads(pathlib.Path("scores.json").read_text(encoding="utf-8"))["result"]
scores = next(iter(next(iter(result.values()), {}).values()), None)
if scores is None:
    refuse("OpenStructure found no matching chains: the model is of another protein, or has other chains. Specify the chain mapping.")

mapping = scores["info"]["mapping"]["chain_mapping"]
equal, aligned = {}, {}
for text in scores["info"]["mapping"]["alignments"]:
    (head, first), (_, second) = (block.split("\n", 1) for block in text.strip().lstrip(">").split("\n>"))
    pairs = [(a, b) for a, b in zip(first.replace("\n", ""), second.replace("\n", "")) if "-" not in (a, b)]
    chain = head.split(":")[-1]
    aligned[chain], equal[chain] = len(pairs), sum(a == b for a, b in pairs)
if not sum(aligned.values()):
    refuse("No residue of the model matches one of the reference. Align by sequence, not by residue number, or use the type tm-align.")
identity = sum(equal.values()) / sum(aligned.values())
coverage = sum(aligned.values()) / sum(theirs.values())
smaller = min(sum(ours.values()), sum(theirs.values()))
if sum(equal.values()) < RELATED * smaller:
    refuse(f"Only {sum(equal.values())} of {smaller} residues are the same: the model is of another protein, or its numbering differs. lDDT compares models of the same protein; otherwise use tm-align.")
if identity < ALIKE:
    warn(f"Only {identity:.0%} of the aligned residues are the same in model and reference; only atoms present in both are compared.")
if coverage < 0.8:
    warn(f"The model has {coverage:.0%} of the reference's residues; missing residues count as wrong.")
alone = sorted(set(theirs) - set(mapping)) + sorted(set(ours) - set(mapping.values()))
if alone:
    warn(f"Chains without a counterpart: {', '.join(alone)}. Those in the reference lower lDDT; RMSD covers only the other chains.")

lddt = scores["lddt"]
rows, residues = [], []
for chain in lddt["single_chain_lddt"]:
    ours_of, theirs_of = chain["model_chain"], chain["reference_chain"]
    rows.append([theirs_of, ours_of, round(chain["global_score"], 4), aligned.get(theirs_of, ""), theirs.get(theirs_of, "")])
    for residue in chain.get("per_residue_scores", []):
        residues.append([len(residues) + 1, theirs_of, residue["residue_number"], residue["residue_name"], round(residue["lddt"], 4) if residue["total_contacts"] else ""])
with open(out / "scores.csv", "w", newline="", encoding="utf-8") as target:
    csv.writer(target).writerows([["reference_chain", "model_chain", "lDDT", "aligned", "residues"], *rows])
with open(out / "residues.csv", "w", newline="", encoding="utf-8") as target:
    csv.writer(target).writerows([["position", "chain", "number", "residue", "lDDT"], *residues])
metrics = {"coverage": round(100 * coverage, 2), "identity": round(100 * identity, 2)}
if lddt["oligo_lddt"]["status"] == "SUCCESS":
    metrics["lddt"] = round(lddt["oligo_lddt"]["global_score"], 4)
if scores["qs_rmsd"]["status"] == "SUCCESS":
    metrics["rmsd_A"] = round(scores["qs_rmsd"]["ca_rmsd"], 3)
if scores["qs_score"]["status"] == "SUCCESS":
    metrics["qs_score"], metrics["qs_best"] = round(scores["qs_score"]["global_score"], 4), round(scores["qs_score"]["best_score"], 4)
elif len(theirs) > 1:
    warn(f"No QS-score: {scores['qs_score']['error']}.")
(out / "metrics.json").write_text(json.dumps(metrics))
