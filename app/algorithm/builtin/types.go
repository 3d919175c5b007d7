package builtin

import (
	"cmp"
	"embed"
	"io/fs"
	"path"
	"slices"
)

// catalogueFiles holds the algorithms that are included in molrun and need other
// programs: one folder for each type, and one for scripts that several types share.
//
//go:embed catalogue/*/*
var catalogueFiles embed.FS

var folders = subFolder(catalogueFiles, "catalogue")

// lib is the folder of shared scripts.
const lib = "lib"

// takers lists the types that use each script of lib.
var takers = map[string][]string{
	"assembly.py":  {"alphafold3", "boltz", "chai-1", "colabfold"},
	"box.py":       {"gnina", "vina"},
	"chains.py":    {"gnina", "vina"},
	"docking.py":   {"gnina", "vina"},
	"fasta.py":     {"alphafold3", "boltz", "chai-1", "colabfold", "esmfold", "msa", "pdbfixer", "proteinmpnn"},
	"gaps.py":      {"electrostatics", "prepare-structure", "propka"},
	"hits.awk":     {"blastp", "diamond", "mmseqs-search"},
	"ligands.py":   {"gnina", "vina"},
	"molecule.py":  {"mopac", "psi4", "xtb"},
	"molecules.py": {"conformers", "gnina", "properties", "vina"},
	"poses.py":     {"autodock4", "plip"},
	"read.py":      {"mustang", "theseus"},
	"summary.awk":  {"clustalo", "kalign", "mafft", "muscle"},

	"release.py":      {"bindcraft", "ligandmpnn", "proteinmpnn"},
	"residues.py":     {"ligandmpnn", "proteinmpnn"},
	"torch_device.py": {"esmfold", "ligandmpnn", "proteinmpnn", "rfdiffusion"},
}

// types returns the names of all types of the catalogue, sorted.
func types() (names []string) {
	entries, err := fs.ReadDir(folders, ".")
	mustHold(err)
	for _, e := range entries {
		if e.Name() != lib {
			names = append(names, e.Name())
		}
	}
	return names
}

// folderOf returns the folder of a type of the catalogue: its own files and the scripts
// that it uses from lib.
func folderOf(name string) fs.FS {
	own := subFolder(folders, name)
	var taken []string
	for script, types := range takers {
		if slices.Contains(types, name) {
			taken = append(taken, script)
		}
	}
	return typeFolder{own, taken}
}

// typeFolder is a folder with some files of lib added.
type typeFolder struct {
	own   fs.FS
	taken []string
}

func (f typeFolder) Open(name string) (fs.File, error) {
	if slices.Contains(f.taken, name) {
		return folders.Open(path.Join(lib, name))
	}
	return f.own.Open(name)
}

// ReadDir makes fs.ReadDir and fs.WalkDir list the files of lib, too.
func (f typeFolder) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(f.own, name)
	if err != nil || name != "." {
		return entries, err
	}
	for _, script := range f.taken {
		info, err := fs.Stat(folders, path.Join(lib, script))
		if err != nil {
			return nil, err
		}
		entries = append(entries, fs.FileInfoToDirEntry(info))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, nil
}

func subFolder(of fs.FS, name string) fs.FS {
	sub, err := fs.Sub(of, name)
	mustHold(err)
	return sub
}

// mustHold panics on an error, which can only be a bug.
func mustHold(err error) {
	if err != nil {
		panic(err)
	}
}
