"""Stand-ins for programs that need weights and a GPU, which tests do not have.

Each takes the options that its program documents and no others, reads the input as the
program does, and writes small made-up results in the documented layout. They compute
nothing. What makes a program fail, or leave out a part with exit status 0, makes its
stand-in do so, in the program's words; a file no-gpu beside it hides the GPU.

  standins.py PROGRAM ARGUMENTS..."""
import argparse
import csv
import json
import os
import pathlib
import re
import signal
import sys

program, *arguments = sys.argv[1:]
options = argparse.ArgumentParser(prog=program)
add = options.add_argument


def fasta(path):
    chains = {}
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith(">"):
            name = line[1:].split()[0]
            chains[name] = ""
        elif not line.startswith("#"):
            chains[name] += line.strip()
    return chains


def pdb(path, length, b=80.0, name="GLY"):
    """Alpha carbons on a line."""
    path.write_text("".join(f"ATOM  {k:5d}  CA  {name} A{k:4d}    {3.8 * k % 900:8.3f}{0:8.3f}{0:8.3f}  1.00{b:6.2f}           C\n" for k in range(1, length + 1)) + "END\n")


def cif(path, length, ligands=0):
    head = "group_PDB id type_symbol label_atom_id label_comp_id label_asym_id auth_asym_id label_seq_id auth_seq_id Cartn_x Cartn_y Cartn_z B_iso_or_equiv pdbx_PDB_model_num"
    rows = "".join(f"ATOM {k} C CA GLY A A {k} {k} {3.8 * k:.2f} 0 0 80 1\n" for k in range(1, length + 1))
    rows += "".join(f"HETATM {length + k} C C1 LIG{k} B B . 1 {3.8 * k:.2f} 9 0 20 1\n" for k in range(1, ligands + 1))
    path.write_text("data_model\nloop_\n" + "".join(f"_atom_site.{word}\n" for word in head.split()) + rows)


def hidden_gpu():
    return (pathlib.Path(__file__).parent / "no-gpu").exists()


def gpu():
    if os.environ.get("CUDA_VISIBLE_DEVICES", "") == "":
        sys.exit("no GPU was given")


def found(cache, *names):
    """Ends as programs do that would download what is not there, in a sandbox without a network."""
    for name in names:
        if not (cache / name).exists():
            sys.exit(f"urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution> for {name}")


def mode(word):
    """Whether a file of this name beside the stand-ins chooses how they fail."""
    return (pathlib.Path(__file__).parent / word).exists()


def boltz():
    import numpy
    add("task", choices=["predict"])
    add("input", type=pathlib.Path)
    for name in ("--out_dir", "--cache"):
        add(name, type=pathlib.Path, required=True)
    for name in ("--devices", "--recycling_steps", "--sampling_steps", "--diffusion_samples", "--seed", "--num_workers", "--preprocessing-threads"):
        add(name, type=int, required=True)
    add("--step_scale", type=float, required=True)
    for name in ("--write_full_pae", "--use_potentials", "--no_kernels"):
        add(name, action="store_true")
    o = options.parse_args(arguments)
    gpu()
    assert o.devices == 1
    found(o.cache, "mols.tar", "mols", "boltz2_conf.ckpt", "boltz2_aff.ckpt")
    document = json.loads(o.input.read_text())
    assert document["version"] == 1
    length, ligands, letters = 0, 0, []
    for entry in document["sequences"]:
        ((kind, value),) = entry.items()
        letters.append(value["id"])
        length += 1 if kind == "ligand" else len(value["sequence"])
        ligands += kind == "ligand"
        assert set(value) <= {"id", "sequence", "msa", "modifications", "cyclic", "smiles", "ccd"} and kind in ("protein", "dna", "rna", "ligand")
        assert kind != "ligand" or ("smiles" in value) != ("ccd" in value)
        if value.get("ccd") == "XXXXX":
            print("Failed to process complex.yaml. Skipping. Error: CCD component XXXXX not found!.")
            return
        if value.get("smiles") == "C(C)(C)(C)(C)C":
            print("Failed to process complex.yaml. Skipping. Error: Python argument types in\n    rdkit.Chem.rdmolops.AddHs(NoneType)\ndid not match C++ signature:")
            return
        if kind == "protein" and value["msa"] == "empty":
            print("Found explicit empty MSA for some proteins, will run these in single sequence mode.")
        elif kind == "protein":
            first = [line.strip() for line in open(value["msa"]) if not line.startswith(">")][0]
            if first != value["sequence"]:
                print("Warning: MSA does not match input sequence, creating dummy.", len(first))
    for constraint in document.get("constraints", []):
        ((kind, value),) = constraint.items()
        if kind == "bond":
            if value["atom1"][2] == "XX":
                print("Failed to process complex.yaml. Skipping. Error: ('A', 2, 'XX').")
                return
            assert all(letter in letters and isinstance(number, int) and atom for letter, number, atom in value.values())
            continue
        tokens = value["contacts"] if kind == "pocket" else [value["token1"], value["token2"]]
        assert all(letter in letters and isinstance(number, int) for letter, number in tokens) and 4 <= value["max_distance"] <= 20
    assert all(pathlib.Path(path).suffix[1:] == kind for template in document.get("templates", []) for kind, path in template.items())
    if mode("cuda-old"):
        sys.exit("RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver")
    if hidden_gpu():
        sys.exit("lightning_fabric.utilities.exceptions.MisconfigurationException: No supported gpu backend found!")
    if mode("no-kernels") and not o.no_kernels:
        sys.exit("ModuleNotFoundError: No module named 'cuequivariance_torch'")
    print("Running structure prediction for 1 input.")
    if length > 1000:
        print("| WARNING: ran out of memory, skipping batch")
        return
    out = o.out_dir / f"boltz_results_{o.input.stem}" / "predictions" / o.input.stem
    out.mkdir(parents=True)
    for k in range(o.diffusion_samples):
        stem = f"{o.input.stem}_model_{k}"
        cif(out / f"{stem}.cif", length)
        figures = {"confidence_score": 0.81 - k / 100, "ptm": 0.78, "iptm": 0.6 * (len(letters) > 1), "ligand_iptm": 0.0, "complex_plddt": 0.9, "complex_pde": 0.6,
                   "chains_ptm": {str(n): 0.78 for n in range(len(letters))}}
        (out / f"confidence_{stem}.json").write_text(json.dumps(figures))
        numpy.savez_compressed(out / f"plddt_{stem}.npz", plddt=numpy.full(length, 0.9, dtype="float32"))
        if o.write_full_pae:
            numpy.savez_compressed(out / f"pae_{stem}.npz", pae=numpy.full((length, length), 0.75, dtype="float32"))
    for wanted in document.get("properties", []):
        assert wanted["affinity"]["binder"] in letters
        if mode("affinity-oom"):
            print("| WARNING: ran out of memory, skipping batch")
            return
        (out / f"affinity_{o.input.stem}.json").write_text(json.dumps({"affinity_pred_value": -0.7, "affinity_probability_binary": 0.66}))


def chai():
    import hashlib
    import numpy
    named = lambda sequence: hashlib.sha256(sequence.upper().encode()).hexdigest() + ".aligned.pqt"
    if arguments[0] == "a3m-to-pqt":
        add("task")
        add("directory", type=pathlib.Path)
        add("--output-directory", type=pathlib.Path)
        o = options.parse_args(arguments)
        (file,) = o.directory.glob("*.a3m")
        o.output_directory.mkdir(exist_ok=True, parents=True)
        (o.output_directory / named(next(iter(fasta(file).values())))).write_text(file.read_text())
        return
    add("task", choices=["fold"])
    add("input", type=pathlib.Path)
    add("out", type=pathlib.Path)
    for name in ("--num-diffn-samples", "--num-trunk-recycles", "--num-diffn-timesteps", "--seed"):
        add(name, type=int, required=True)
    for name in ("--msa-directory", "--constraint-path"):
        add(name, type=pathlib.Path)
    add("--use-esm-embeddings", action="store_true")
    add("--no-use-esm-embeddings", action="store_true")
    o = options.parse_args(arguments)
    gpu()
    assert not o.out.exists() and os.environ["COLUMNS"] == "500"
    if mode("cuda-old"):
        sys.exit("RuntimeError: The NVIDIA driver on your system is too old (found version 11040).")
    if hidden_gpu():
        sys.exit("RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU")
    downloads = pathlib.Path(os.environ["CHAI_DOWNLOADS_DIR"])
    found(downloads, "conformers_v1.apkl")
    chains, lengths, proteins, ligands = fasta(o.input), [], [], []
    for name, letters in chains.items():
        kind, name = name.split("|name=")
        assert kind in ("protein", "dna", "rna", "ligand")
        if kind == "ligand" and letters in ("C1CC", "C(C)(C)(C)(C)C"):
            print(f"ERROR:Failed to tokenize input entity_data=AllAtomEntityData(entity_name='{name}')  sym_id=1", file=sys.stderr)
            continue
        letters = re.sub(r"\([A-Z0-9]+\)", "X", letters)
        if kind == "protein" and o.msa_directory and not (o.msa_directory / named(letters)).exists():
            print(f"WARNING:No MSA found for sequence: {letters}")
        proteins.append(letters)
        lengths.append(len(letters))
        ligands += [len(letters)] if kind == "ligand" else []
    if sum(lengths) > 2048:
        sys.exit(f"UnsupportedInputError: Too many tokens in input: {sum(lengths)} > 2048. Please limit the length of the input sequence.")
    for row in csv.DictReader(open(o.constraint_path)) if o.constraint_path else []:
        name, number = row["res_idxB"][0], int(row["res_idxB"][1:])
        assert proteins["ABCDEFGH".index(row["chainB"])][number - 1] == name and (row["res_idxA"] == "") == (row["connection_type"] == "pocket")
    if not o.no_use_esm_embeddings:
        found(downloads, "esm/traced_sdpa_esm2_t36_3B_UR50D_fp16.pt")
    found(downloads, *(f"models_v2/{name}.pt" for name in ("feature_embedding", "bond_loss_input_proj", "token_embedder", "trunk", "diffusion_module", "confidence_head")))
    for k in range(0, 200, 50):
        print(f"Diffusion steps:  {k // 2}%|{'#' * (k // 20):<10}| {k}/199 [00:01<00:01]", end="\r", file=sys.stderr)
    o.out.mkdir()
    several = len(lengths) > 1
    for k in range(o.num_diffn_samples):
        cif(o.out / f"pred.model_idx_{k}.cif", sum(lengths) - sum(ligands), len(ligands))
        ptm, iptm = 0.7 + 0.01 * k, 0.4 if several else 0.0
        numpy.savez(o.out / f"scores.model_idx_{k}.npz", aggregate_score=numpy.array([0.2 * ptm + 0.8 * iptm]), ptm=numpy.array([ptm]), iptm=numpy.array([iptm]),
                    per_chain_ptm=numpy.full((1, len(lengths)), ptm), has_inter_chain_clashes=numpy.array([False]))


def colabfold():
    add("input", type=pathlib.Path)
    add("out", type=pathlib.Path)
    add("--data", type=pathlib.Path, required=True)
    for name in ("--num-recycle", "--num-models", "--random-seed", "--num-seeds"):
        add(name, type=int, required=True)
    add("--model-type", choices=["auto", "alphafold2_ptm", "alphafold2_multimer_v3"], required=True)
    add("--stop-at-score", type=float, required=True)
    add("--recycle-early-stop-tolerance", type=float)
    add("--max-msa")
    add("--use-dropout", action="store_true")
    add("--msa-mode", choices=["single_sequence"])
    add("--amber", action="store_true")
    add("--num-relax", type=int)
    o = options.parse_args(arguments)
    gpu()
    assert os.environ["JAX_PLATFORMS"] == "cuda,cpu"
    print("WARNING: no GPU detected, will be using CPU" if hidden_gpu() else "Running on GPU", file=sys.stderr)
    assert (o.msa_mode is None) == (o.input.suffix == ".a3m")
    ((name, letters), *others) = fasta(o.input).items()
    if o.input.suffix == ".a3m":
        name = o.input.stem
    else:
        assert not others, "each record is a protein of its own"
    chains = letters.split(":")
    letters = "".join(chains)
    kind = o.model_type if o.model_type != "auto" else "alphafold2_multimer_v3" if len(chains) > 1 else "alphafold2_ptm"
    found(o.data / "params", {"alphafold2_ptm": "download_finished.txt", "alphafold2_multimer_v3": "download_complexes_multimer_v3_finished.txt"}[kind])
    if o.amber and mode("no-openmm"):
        sys.exit("ModuleNotFoundError: No module named 'openmm'")
    if len(letters) > 1000:
        print(f"2026-01-01 00:00:00,000 Could not predict {name}. Not Enough GPU memory? RESOURCE_EXHAUSTED: Out of memory while trying to allocate 31138512896 bytes.", file=sys.stderr)
        return
    rank = 0
    for seed in range(o.random_seed, o.random_seed + o.num_seeds):
        for k in range(1, o.num_models + 1):
            rank += 1
            tag = f"{kind}_model_{k}_seed_{seed:03d}"
            print(f"2026-01-01 00:00:00,000 {tag} took 12.3s ({o.num_recycle} recycles)", file=sys.stderr)
            pdb(o.out / f"{name}_unrelaxed_rank_{rank:03d}_{tag}.pdb", len(letters), 90 - 5 * k)
            scores = {"plddt": [90 - 5 * k] * len(letters), "max_pae": 20.5, "pae": [[0.5]], "ptm": 0.8}
            (o.out / f"{name}_scores_rank_{rank:03d}_{tag}.json").write_text(json.dumps(scores | ({"iptm": 0.6} if len(chains) > 1 else {})))
    for picture in ("plddt", "pae", "coverage"):
        (o.out / f"{name}_{picture}.png").write_bytes(b"\x89PNG\r\n\x1a\n")


def alphafold3():
    for name in ("--json_path", "--model_dir", "--output_dir"):
        add(name, type=pathlib.Path, required=True)
    add("--run_data_pipeline", choices=["false"], required=True)
    for name in ("--num_diffusion_samples", "--num_recycles"):
        add(name, type=int, required=True)
    add("--flash_attention_implementation", choices=["triton", "cudnn", "xla"])
    o = options.parse_args(arguments)
    gpu()
    if not (o.model_dir / "af3.bin.zst").exists():
        sys.exit(f"FileNotFoundError: No models matched in {o.model_dir}")
    assert os.environ["XLA_CLIENT_MEM_FRACTION"] == "0.95"
    if mode("cuda-7") and ("custom-kernel-fusion-rewriter" not in os.environ["XLA_FLAGS"] or o.flash_attention_implementation != "xla"):
        sys.exit("ValueError: For devices with GPU compute capability 7.x (see https://developer.nvidia.com/cuda-gpus) the ENV XLA_FLAGS must include")
    if hidden_gpu():
        sys.exit("RuntimeError: Unknown backend: 'gpu' requested, but no platforms that are instances of gpu are present. Platforms present are: cpu")
    document = json.loads(o.json_path.read_text())
    assert document["dialect"] == "alphafold3" and document["modelSeeds"]
    length, letters = 0, []
    for entry in document["sequences"]:
        ((kind, value),) = entry.items()
        letters.append(value["id"])
        assert set(value) <= {
            "protein": {"id", "sequence", "modifications", "unpairedMsa", "pairedMsa", "templates"}, "rna": {"id", "sequence", "modifications", "unpairedMsa"},
            "dna": {"id", "sequence", "modifications"}, "ligand": {"id", "smiles", "ccdCodes"}}[kind]
        if value.get("smiles") == "C(C)(C)(C)(C)C":
            sys.exit("ValueError: Unable to make RDKit Mol from SMILES: C(C)(C)(C)(C)C")
        if value.get("ccdCodes") == ["XXXXX"]:
            sys.exit("ValueError: No CCD entry or SMILES for XXXXX.")
        length += len(value.get("sequence", "C"))
        if kind == "protein":
            assert value["templates"] == [] and value["pairedMsa"] == ""
            if value["unpairedMsa"]:
                assert value["unpairedMsa"].split("\n")[1] == value["sequence"]
    assert all(chain in letters and isinstance(number, int) and atom for pair in document.get("bondedAtomPairs", []) for chain, number, atom in pair)
    if length > 1000:
        sys.exit("jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 31138512896 bytes.")
    out, name = o.output_dir / document["name"], document["name"]
    out.mkdir()
    cif(out / f"{name}_model.cif", length)
    (out / f"{name}_summary_confidences.json").write_text(json.dumps({"ranking_score": 0.83, "ptm": 0.8, "iptm": 0.7 if len(letters) > 1 else None, "fraction_disordered": 0.02, "has_clash": 0.0}))
    (out / f"{name}_confidences.json").write_text(json.dumps({"atom_plddts": [85.0, 75.0], "contact_probs": [[0.5]], "pae": [[0.8]]}))
    rows = [f"{seed},{k},{0.83 - 0.01 * k}" for seed in document["modelSeeds"] for k in range(o.num_diffusion_samples)]
    (out / f"{name}_ranking_scores.csv").write_text("seed,sample,ranking_score\n" + "\n".join(rows) + "\n")
    for seed in document["modelSeeds"]:
        print(f"Running model inference with seed {seed}...")
        print(f"Running model inference with seed {seed} took 1.00 seconds.")
        for k in range(o.num_diffusion_samples):
            stem = f"seed-{seed}_sample-{k}"
            (out / stem).mkdir()
            cif(out / stem / f"{name}_{stem}_model.cif", length)


def esmfold():
    add("-i", "--fasta", type=pathlib.Path, required=True)
    add("-o", "--pdb", type=pathlib.Path, required=True)
    for name in ("--num-recycles", "--chunk-size"):
        add(name, type=int)
    add("--max-tokens-per-batch", type=int, default=1024)
    o = options.parse_args(arguments)
    gpu()
    records = []
    for line in o.fasta.read_text().splitlines():
        if line.startswith(">"):
            records.append([line[1:].strip(), ""])
        else:
            records[-1][1] += line.strip()
    for k, (header, letters) in enumerate(sorted(records, key=lambda r: len(r[1])), 1):
        if len(letters) > 100 and o.max_tokens_per_batch == 7:
            print(f"26/11/28 11:00:00 | INFO | root | Failed (CUDA out of memory) on sequence {header} of length {len(letters)}.")
            continue
        unknown = sum(c not in "ACDEFGHIKLMNPQRSTVWY" for c in letters)
        pdb(o.pdb / f"{header}.pdb", len(letters), 77 if unknown == 0 else 29)
        print(f"26/11/28 11:00:00 | INFO | root | Predicted structure for {header} with length {len(letters)}, pLDDT 77.0, pTM 0.712 in 3.2s. {k} / {len(records)} completed.")


def proteinmpnn():
    add("--pdb_path", type=pathlib.Path, required=True)
    add("--out_folder", type=pathlib.Path, required=True)
    for name in ("--num_seq_per_target", "--seed", "--batch_size"):
        add(name, type=int, required=True)
    for name in ("--sampling_temp", "--backbone_noise"):
        add(name, type=float, required=True)
    add("--score_only", type=int, default=0)
    add("--model_name", required=True)
    add("--omit_AAs", type=list, required=True)
    for name in ("--pdb_path_chains", "--fixed_positions_jsonl", "--tied_positions_jsonl", "--bias_AA_jsonl", "--path_to_fasta"):
        add(name, default="")
    for name in ("--use_soluble_model", "--ca_only"):
        add(name, action="store_true")
    o = options.parse_args(arguments)
    folder = "ca" if o.ca_only else "soluble" if o.use_soluble_model else "vanilla"
    assert (pathlib.Path(__file__).parent / f"{folder}_model_weights" / f"{o.model_name}.pt").exists()
    names = dict(zip("ALA ARG ASN ASP CYS GLN GLU GLY HIS ILE LEU LYS MET PHE PRO SER THR TRP TYR VAL".split(), "ARNDCQEGHILKMFPSTWYV"))
    read = {}
    for line in o.pdb_path.read_text().splitlines():
        if line.startswith("ATOM"):
            read.setdefault(line[21], {})[int(line[22:26])] = names[line[17:20]]
    chains = {c: "".join(r.get(n, "X") for n in range(min(r), max(r) + 1)) for c, r in read.items()}
    designed = sorted(o.pdb_path_chains.split() or chains)
    for c in designed:
        if c not in chains:
            raise KeyError(f"seq_chain_{c}")

    def jsonl(path):
        return json.loads(pathlib.Path(path).read_text()) if os.path.isfile(path) else {}

    fixed, tied, bias = (jsonl(path) for path in (o.fixed_positions_jsonl, o.tied_positions_jsonl, o.bias_AA_jsonl))
    assert all({c: [k + 1] for c in designed} == tie for k, tie in enumerate(tied.get("backbone", [])))
    if o.score_only:
        length = sum(len(chains[c]) for c in designed)
        print("Score for backbone from PDB, mean: 1.7012, std: 0.0300, sample size: 2,  global score, mean: 1.8012, std: 0.0310, sample size: 2")
        for k, letters in enumerate(fasta(o.path_to_fasta).values() if o.path_to_fasta else (), 1):
            assert len(letters) == length, "a part of the sequence is scored"
            print(f"Score for backbone_{k} from FASTA, mean: {1.5 - 0.1 * k:.4f}, std: 0.0300, sample size: 2,  global score, mean: 1.8000, std: 0.0310, sample size: 2")
        return
    (o.out_folder / "seqs").mkdir(parents=True)
    text = f">{o.pdb_path.stem}, score=1.9, global_score=1.9, fixed_chains=[], designed_chains={designed}, model_name={o.model_name}, git_hash=0, seed={o.seed}\n{'/'.join(chains[c] for c in designed)}\n"
    letter = max(bias, key=bias.get, default="G")
    for k in range(1, o.num_seq_per_target + 1):
        kept = {c: set(fixed.get("backbone", {}).get(c, [])) for c in designed}
        new = "/".join("".join(x if n in kept[c] or x == "X" else letter for n, x in enumerate(chains[c], 1)) for c in designed)
        text += f">T={o.sampling_temp}, sample={k}, score={0.9 + 0.1 * k:.4f}, global_score=1.0, seq_recovery=0.45\n{new}\n"
    (o.out_folder / "seqs" / f"{o.pdb_path.stem}.fa").write_text(text)


def ligandmpnn():
    known = "protein_mpnn ligand_mpnn soluble_mpnn global_label_membrane_mpnn".split()
    add("--model_type", choices=known, required=True)
    for name in ("--pdb_path", "--out_folder", "--checkpoint_path_sc", *(f"--checkpoint_{kind}" for kind in known)):
        add(name, type=pathlib.Path)
    for name in ("--seed", "--batch_size", "--number_of_batches", "--verbose"):
        add(name, type=int, required=True)
    for name in ("--parse_atoms_with_zero_occupancy", "--global_transmembrane_label", "--ligand_mpnn_use_side_chain_context", "--pack_side_chains", "--number_of_packs_per_design"):
        add(name, type=int, default=0)
    add("--temperature", type=float, required=True)
    for name in ("--redesigned_residues", "--symmetry_residues", "--symmetry_weights", "--bias_AA", "--omit_AA"):
        add(name, default="")
    o = options.parse_args(arguments)
    assert getattr(o, f"checkpoint_{o.model_type}").exists()
    assert not o.pack_side_chains or o.checkpoint_path_sc.exists()
    names = dict(zip("ALA ARG ASN ASP CYS GLN GLU GLY HIS ILE LEU LYS MET PHE PRO SER THR TRP TYR VAL MSE".split(), "ARNDCQEGHILKMFPSTWYVX"))
    read, ligand = {}, []
    for line in o.pdb_path.read_text().splitlines():
        if line.startswith(("ATOM", "HETATM")):
            place = [float(line[k:k + 8]) for k in (30, 38, 46)]
            if line[17:20] in names:  # ATOM or not
                read.setdefault(line[21], {}).setdefault(line[22:27].strip(), (names[line[17:20]], []))[1].append((line[12:16].strip(), place))
            elif line[17:20] != "HOH" and line[76:78].strip() != "H":
                ligand.append(place)
    order = [(c, n) for c, residues in read.items() for n in residues]
    for c, n in order:
        if sum(atom in ("N", "CA", "C", "O") for atom, _ in read[c][n][1]) != 4:
            raise ValueError("setResnames: array must have one element for each atom")
    asked = set(o.redesigned_residues.split())
    designed = [(c, n) for c, n in order if c + n in asked]
    tied = {}
    for group in filter(None, o.symmetry_residues.split("|")):
        for n in group.split(","):
            tied[n] = group.split(",")
            assert n in {c + n for c, n in order}
    near = sum(any(sum((x - y) ** 2 for x, y in zip(place, other)) < 64 for other in ligand for atom, place in read[c][n][1] if atom == "CA") for c, n in designed)
    ligands = near if o.model_type == "ligand_mpnn" else len(designed)
    letter = o.bias_AA[:1] or "G"

    def sequence(new):
        return ":".join("".join(letter if new and (c, n) in designed else residue[0] for n, residue in read[c].items()) for c in sorted(read))

    for folder in ("seqs", "backbones", "packed"):
        (o.out_folder / folder).mkdir(parents=True)
    stem = o.pdb_path.stem
    text = f">{stem}, T={o.temperature}, seed={o.seed}, num_res={len(designed)}, num_ligand_res={ligands}, use_ligand_context=True, ligand_cutoff_distance=8.0, batch_size=1, number_of_batches={o.number_of_batches}, model_path=weights.pt\n{sequence(False)}\n"
    for k in range(1, o.number_of_batches + 1):
        text += f">{stem}, id={k}, T={o.temperature}, seed={o.seed}, overall_confidence={0.5 - 0.01 * k:.4f}, ligand_confidence={0.4 if near else 1.0:.4f}, seq_rec=0.4500\n{sequence(True)}\n"
        (o.out_folder / "backbones" / f"{stem}_{k}.pdb").write_text(o.pdb_path.read_text())
        if o.pack_side_chains:
            (o.out_folder / "packed" / f"{stem}_packed_{k}_1.pdb").write_text(o.pdb_path.read_text())
    (o.out_folder / "seqs" / f"{stem}.fa").write_text(text.rstrip("\n"))  # without the last end of line, as the program


def gnina():
    if arguments == ["--version"]:
        print("gnina v1.3.2 master:25e64da   Built Mar  4 2025.")
        return
    for name in ("--receptor", "--ligand", "--config", "--out"):
        add(name, type=pathlib.Path, required=True)
    for name in ("--exhaustiveness", "--num_modes", "--seed", "--cpu"):
        add(name, type=int, required=True)
    add("--cnn", choices=["fast"])
    add("--no_gpu", action="store_true")
    o = options.parse_args(arguments)
    if not o.no_gpu:
        if hidden_gpu():
            print("WARNING: No GPU detected. CNN scoring will be slow.\nRecommend running with single model (--cnn fast)\n")
        else:
            gpu()
    if mode("oom"):
        sys.exit("\nRuntime Error\nCUDA out of memory. Tried to allocate 2.00 GiB")
    assert all(any(line.startswith(f"{word}_{axis} = ") for line in o.config.read_text().splitlines()) for word in ("center", "size") for axis in "xyz")
    assert any(line.endswith("H  ") for line in o.receptor.read_text().splitlines()), "the receptor has no hydrogens"
    molecule = o.ligand.read_text().split("$$$$")[0]
    if "Br" in molecule:
        sys.exit('\n\nParse error on line 5 in file "ligand.sdf": unknown atom')
    score = 0.9 if o.cnn is None else 0.4
    o.out.write_text("".join(
        f"{molecule}> <minimizedAffinity>\n{-6.5 + 0.1 * k:.5f}\n\n> <minimizedRMSD>\n1.20000\n\n> <CNNscore>\n{score - 0.1 * k:.10f}\n\n"
        f"> <CNNaffinity>\n{5.0 - 0.1 * k:.10f}\n\n> <CNN_VS>\n{(score - 0.1 * k) * (5.0 - 0.1 * k):.10f}\n\n> <CNNaffinity_variance>\n0.1\n\n$$$$\n"
        for k in range(min(o.num_modes, 3))))


def immunebuilder():
    name = arguments.pop(0)
    for option in ("--fasta_file", "--output"):
        add(option, type=pathlib.Path, required=True)
    for option in ("--to_directory", "--verbose"):
        add(option, action="store_true")
    add("--numbering_scheme", choices="imgt chothia kabat aho wolfguy martin raw".split(), default="imgt")
    add("--n_threads", type=int, default=-1)
    o = options.parse_args(arguments)
    words = o.fasta_file.read_text().split()
    chains = {word[1:]: words[k + 1] for k, word in enumerate(words[:-1]) if word[0] == ">"}
    order = {"ABodyBuilder2": "HL", "NanoBodyBuilder2": "H", "TCRBuilder2": "BA"}[name]
    assert o.to_directory and set(chains) == set(order)
    names = dict(zip("ARNDCQEGHILKMFPSTWYV", "ALA ARG ASN ASP CYS GLN GLU GLY HIS ILE LEU LYS MET PHE PRO SER THR TRP TYR VAL".split()))
    text = ""
    for y, chain in enumerate(order):
        if "GGGGGGGG" in chains[chain]:
            sys.exit(f"Sequence provided as an {chain} chain is not recognised as an {chain} chain.")
        for k, letter in enumerate(chains[chain][:120], 1):
            text += f"ATOM  {k:5d}  CA  {names[letter]} {chain}{k:4d}    {3.8 * k:8.3f}{10 * y:8.3f}{0:8.3f}  1.00{1.5 if k > 104 else 0.25:6.2f}           C\n"
    o.output.mkdir()
    for k in range(4):
        (o.output / f"rank{k}_unrefined.pdb").write_text(text)
    (o.output / "final_model.pdb").write_text(f"REMARK  STRUCTURE MODELLED USING {name.upper()}\n{text}END\n")


def rfdiffusion():
    symmetric = arguments[0] == "--config-name=symmetry"
    values = dict(word.split("=", 1) for word in arguments[symmetric:])
    inference = ("input_pdb num_designs design_startnum ckpt_override_path symmetry output_prefix write_trajectory deterministic schedule_directory_path "
                 "model_directory_path cyclic cyc_chains")
    known = {f"inference.{name}" for name in inference.split()} | {f"contigmap.{name}" for name in ("contigs", "inpaint_seq", "inpaint_str")}
    known |= {f"potentials.{name}" for name in ("guiding_potentials", "guide_scale", "guide_decay", "olig_inter_all", "olig_intra_all")}
    known |= {"ppi.hotspot_res", "diffuser.T", "diffuser.partial_T", "denoiser.noise_scale_ca", "denoiser.noise_scale_frame", "hydra.run.dir"}
    assert set(values) <= known, set(values) - known
    assert symmetric == ("inference.symmetry" in values)
    gpu()
    models = pathlib.Path(values["inference.model_directory_path"])
    name = "Base"
    if "contigmap.inpaint_seq" in values or "contigmap.inpaint_str" in values:
        name = "InpaintSeq"
    elif "ppi.hotspot_res" in values:  # even an empty list
        name = "Complex_base"
    weights = pathlib.Path(values.get("inference.ckpt_override_path", models / f"{name}_ckpt.pt"))
    weights.open().close()
    contigs = values["contigmap.contigs"][1:-1]
    if contigs.isdigit():
        raise AttributeError("'int' object has no attribute 'strip'")
    there = []
    if "inference.input_pdb" in values:
        there = [(line[21], int(line[22:26])) for line in open(values["inference.input_pdb"]) if line.startswith("ATOM") and line[12:16] == " CA "]
    chains = []
    for block in contigs.split():
        chain = []
        for part in block.split("/"):
            first, last = part.split("-") if part != "0" else ("0", "0")
            if first[0].isalpha():
                chain += [(first[0], k) for k in range(int(first[1:]), int(last) + 1)]
            else:
                chain += [None] * int(last)
        chains.append(chain)
    for place in filter(None, sum(chains, [])):
        assert place in there, f"{place} is not in pdb file!"
    if symmetric:
        copies = int(values["inference.symmetry"][1:])
        chains = [[None] * (len(chains[0]) // copies)] * copies
    steps = int(values.get("diffuser.partial_T", values["diffuser.T"]))
    start, prefix = int(values.get("inference.design_startnum", 0)), pathlib.Path(values["inference.output_prefix"])
    for k in range(start, start + int(values["inference.num_designs"])):
        for t in range(steps, 1, -1):
            print(f"[2026-11-28 11:00:01,000][rfdiffusion.inference.model_runners][INFO] - Timestep {t}, input to next step: {'-' * 10}")
        text = ""
        for letter, chain in zip("ABCDEF", chains):
            for n, place in enumerate(chain, 1):
                for m, (atom, x) in enumerate((("N", -1.2), ("CA", 0), ("C", 1.2), ("O", 1.3))):
                    text += f"ATOM  {4 * n + m:5d}  {atom:3} GLY {letter}{n:4d}    {3.8 * n + x:8.3f}{m / 2 + 10 * 'ABCDEF'.index(letter):8.3f}{0:8.3f}  1.00{0 if place is None else 1:6.2f}           {atom[0]}\n"
        pathlib.Path(f"{prefix}_{k}.pdb").write_text(text + "END\n")
        pathlib.Path(f"{prefix}_{k}.trb").write_text(f"{weights.name} " + " ".join(arguments))
        if values["inference.write_trajectory"] == "True":
            (prefix.parent / "traj").mkdir(exist_ok=True)
            (prefix.parent / "traj" / f"design_{k}_pX0_traj.pdb").write_text(f"MODEL     1\n{text}ENDMDL\n")


def bindcraft():
    for name in ("--settings", "--filters", "--advanced"):
        add(name, type=pathlib.Path, required=True)
    if hidden_gpu():
        print("No GPU device found, terminating.")
        return
    o = options.parse_args(arguments)
    gpu()
    s = json.loads(o.settings.read_text())
    o.advanced.open().close()
    o.filters.open().close()
    there = {(line[21], int(line[22:26])) for line in open(s["starting_pdb"]) if line.startswith("ATOM")}
    assert all(any(c == chain for c, _ in there) for chain in s["chains"].split(",")) and s["lengths"][0] <= s["lengths"][1]
    base = pathlib.Path(s["design_path"])
    accepted = base / "Accepted"
    (accepted / "Ranked").mkdir(parents=True)
    columns = "Design,Length,Sequence,Average_pLDDT,Average_i_pTM,Average_i_pAE,Average_dG"
    final, mpnn = base / "final_design_stats.csv", base / "mpnn_design_stats.csv"
    final.write_text(f"Rank,{columns}\n")
    mpnn.write_text(f"{columns}\n")
    wanted, name = s["number_of_final_designs"], f"{s['binder_name']}_l80_s1_mpnn"
    length = s["lengths"][0]  # chooses the end: 21 hangs after a design, 22 gives up after one, 23 before one, 24 fails after one
    rows = []
    for k in range(1, {21: 1, 22: 1, 23: 0, 24: 1}.get(length, wanted) + 1):
        print(f"Starting trajectory: {s['binder_name']}_l80_s1", flush=True)
        rows.append(f"{name}{k},80,MKV,{0.80 + 0.01 * k:.2f},{0.75 + 0.05 * (k % 2):.2f},0.2,{-40 - k}.5")
        with open(mpnn, "a") as f:
            print(rows[-1], file=f)
        print(f"{name}{k} passed all filters", flush=True)
        pdb(accepted / f"{name}{k}_model1.pdb", 80)
        with open(final, "a") as f:
            print("," + rows[-1], file=f)
    if length == 21:
        signal.pause()
    if length == 24:
        sys.exit("RESOURCE_EXHAUSTED")
    if length in (22, 23):
        print("The ratio of successful designs is lower than defined acceptance rate! Consider changing your design settings!\nScript execution stopping...")
        return
    rows.sort(key=lambda row: -float(row.split(",")[4]))
    final.write_text(f"Rank,{columns}\n" + "".join(f"{k},{row}\n" for k, row in enumerate(rows, 1)))
    for k in range(1, wanted + 1):
        pdb(accepted / "Ranked" / f"{k}_{name}{k}_model1.pdb", 80)


globals()[program]()
