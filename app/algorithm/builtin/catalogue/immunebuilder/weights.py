"""Succeeds if ImmuneBuilder and all its weights are installed; it would otherwise download them."""
import os
import pathlib
import sys

import ImmuneBuilder
import anarci
import openmm
import pdbfixer

folder = pathlib.Path(os.path.dirname(ImmuneBuilder.__file__), "trained_model")
names = [f"{kind}_model_{k}" for kind in ("antibody", "nanobody", "tcr") for k in range(1, 5)]
missing = [name for name in names if not (folder / name).is_file() or (folder / name).stat().st_size < 1_000_000]
if missing:  # the package ships empty files with these names
    sys.exit(f"{folder} lacks the weights {', '.join(missing)}")
