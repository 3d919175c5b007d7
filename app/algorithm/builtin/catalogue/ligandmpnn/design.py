"""Runs LigandMPNN with the options that name residues, which are too long for a command template."""
import json
import os
import sys

options, *command = sys.argv[1:]
os.execv(command[0], command + json.load(open(options, encoding="utf-8")))
