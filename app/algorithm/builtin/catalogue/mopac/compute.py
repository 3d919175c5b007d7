"""Runs MOPAC on a molecule: mopac.txt, optimized.xyz, atoms.csv, vibrations.csv and metrics.json.

MOPAC always exits with status 0 and "JOB ENDED NORMALLY", so its report is checked.

  compute.py MOLECULE OUT SETTINGS CPUS"""
import csv
import json
import pathlib
import re
import subprocess
import sys

molecule, out, settings, cpus = sys.argv[1:]
out, settings = pathlib.Path(out), json.loads(pathlib.Path(settings).read_text(encoding="utf-8"))
SPINS = ["SINGLET", "DOUBLET", "TRIPLET", "QUARTET", "QUINTET", "SEXTET", "SEPTET"]
PERMITTIVITY = {"water": 78.4, "dmso": 46.8, "acetonitrile": 35.7, "methanol": 32.6, "ethanol": 24.9, "acetone": 20.5, "dichloromethane": 8.9, "thf": 7.4, "chloroform": 4.7, "toluene": 2.4, "hexane": 1.9}
NOISE = -30  # cm⁻¹: lower frequencies indicate a saddle point


def refuse(sentence):
    sys.exit("molrun: " + sentence)


def warn(sentence):
    print("molrun:warning " + sentence)


def run(name, atoms, *keywords):
    """Runs MOPAC and returns its report and its machine-readable one."""
    words = [settings["method"], f"CHARGE={settings['charge']}", SPINS[settings["unpaired"]], f"THREADS={cpus}", "AUX(PRECISION=8)", "T=7D", *keywords]
    if settings["unpaired"]:
        words.append("UHF")
    if settings.get("solvent"):
        words.append(f"EPS={PERMITTIVITY[settings['solvent']]}")
    lines = [" ".join(words), "", name, *("{} {:.8f} 1 {:.8f} 1 {:.8f} 1".format(*atom) for atom in atoms), ""]
    pathlib.Path(name + ".mop").write_text("\n".join(lines), encoding="utf-8")
    done = subprocess.run(["mopac", name + ".mop"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    print(done.stdout)
    report, told = pathlib.Path(name + ".out"), pathlib.Path(name + ".aux")
    text = report.read_text(encoding="utf-8", errors="replace") if report.exists() else ""
    with open(out / "mopac.txt", "a", encoding="utf-8") as target:
        target.write(text)
    return text, told.read_text(encoding="utf-8", errors="replace") if told.exists() else ""


def complain(text):
    """Fails with the error that MOPAC reports."""
    boxed = re.search(r"Error and normal termination messages.*?\n \*+\n", text, re.S)
    said = [line.strip(" *") for line in boxed[0].splitlines()[1:]] if boxed else []
    said = " ".join(line for line in said if line and not line.startswith("JOB ENDED")) or "it gave no result"
    refuse(f"MOPAC could not compute the molecule: {said[:300]}")


def values(told, key):
    """The last list of numbers (or number) with this name; spaces between numbers can be missing."""
    found = re.findall("(?m)^ " + re.escape(key) + r"(?:\[\d+\])?=(.*(?:\n +[-+\d.].*)*)", told)
    return [float(word.replace("D", "E")) for word in re.findall(r"[-+]?\d+\.\d+(?:[DE][-+]?\d+)?", found[-1])] if found else []


atoms = [line.split() for line in pathlib.Path(molecule).read_text(encoding="utf-8").splitlines()[2:]]
atoms = [(atom[0], *map(float, atom[1:4])) for atom in atoms]
if settings["task"] == "vibrations" and len(atoms) == 1:
    refuse("A single atom does not vibrate: compute its energy.")
energy_alone = settings["task"] == "energy"
keywords = ["1SCF"] if energy_alone else ["PRECISE", "LET", "DDMIN=0.0"] if settings.get("solvent") else ["PRECISE"]
text, told = run("molecule", atoms, *keywords)
heat = re.findall(r"FINAL HEAT OF FORMATION =\s+(-?[\d.]+) KCAL", text)
if not heat or "SCF FIELD WAS ACHIEVED" not in text:
    complain(text)
place = values(told, "ATOM_X_OPT:ANGSTROMS")
charges = values(told, "ATOM_CHARGES")
if len(place) != 3 * len(atoms) or len(charges) != len(atoms):
    complain(text)
metrics = {"heat_kcal_mol": float(heat[-1])}
for name, key in {"dipole_D": "DIPOLE:DEBYE", "ionization_eV": "IONIZATION_POTENTIAL:EV"}.items():
    if values(told, key) and not (name == "dipole_D" and settings["charge"]):  # that of an ion depends on the origin
        metrics[name] = round(values(told, key)[0], 4)
orbitals = re.findall(r"HOMO LUMO ENERGIES \(EV\) =\s+(-?[\d.]+)\s+(-?[\d.]+)", text)
if orbitals:
    metrics["gap_eV"] = round(float(orbitals[-1][1]) - float(orbitals[-1][0]), 3)
if not energy_alone:
    atoms = [(atom[0], *place[3 * k:3 * k + 3]) for k, atom in enumerate(atoms)]
    gradient = values(told, "GRADIENT_NORM:KCAL/MOL/ANGSTROM")
    if re.search(r"MAY NOT BE COMPLETELY OPTIMIZED|EXCESS NUMBER OF OPTIMIZATION|NOT YET .*OPTIMI", text) or gradient and gradient[0] > 1 + 0.2 * len(atoms):
        warn(f"The geometry is not fully optimized: the gradient norm is {gradient[0] if gradient else 0:.1f} kcal/mol/Å. Optimize the result again.")
    (out / "optimized.xyz").write_text(f"{len(atoms)}\n{settings['method']} {heat[-1]} kcal/mol\n" + "".join("{} {:.6f} {:.6f} {:.6f}\n".format(*atom) for atom in atoms), encoding="utf-8")
with open(out / "atoms.csv", "w", newline="", encoding="utf-8") as target:
    csv.writer(target).writerows([["atom", "element", "charge_e"], *([k, atom[0], f"{charge:.5f}"] for k, (atom, charge) in enumerate(zip(atoms, charges), 1))])

if settings["task"] == "vibrations":
    print("molrun:progress 0.3 vibrations", flush=True)
    text, told = run("vibrations", atoms, "FORCE", "THERMO(298,298)", "LET")
    frequencies = values(told, "VIB._FREQ:CM(-1)")
    genuine = re.search(r"THERE ARE\s+(\d+) GENUINE VIBRATIONS", text)
    if not frequencies or not genuine:
        complain(text)
    frequencies = frequencies[:int(genuine[1])]
    with open(out / "vibrations.csv", "w", newline="", encoding="utf-8") as target:
        csv.writer(target).writerows([["mode", "wavenumber_cm"], *enumerate(frequencies, 1)])
    saddle = [f for f in frequencies if f < NOISE]
    zero, entropy = values(told, "ZERO_POINT_ENERGY:KCAL/MOL"), values(told, "ENTROPY_TOT:CAL/K/MOL")
    if saddle:
        warn(f"The geometry is a saddle point, not a minimum: imaginary frequencies of {', '.join(f'{f:.0f}' for f in saddle)} cm⁻¹. No free energy is reported. Start again from a geometry without symmetry.")
    elif zero and entropy:
        metrics["zero_point_kcal_mol"], metrics["entropy_cal_mol_K"] = round(zero[0], 4), round(entropy[0], 4)
        metrics["free_energy_kcal_mol"] = round(metrics["heat_kcal_mol"] - 0.298 * entropy[0], 4)
(out / "metrics.json").write_text(json.dumps(metrics))
