// Package algorithms holds the algorithm files that come with the program, and
// reads those that a site adds. No other code tells them apart.
package algorithms

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"molrun/app/algorithm"
)

//go:embed *.toml
var files embed.FS

//go:embed examples
var examples embed.FS

// BuiltIn returns the algorithms of this program. An error is a mistake in the
// program itself.
func BuiltIn() ([]*algorithm.File, error) {
	all, mistakes, err := read(files, func(name string) string { return "(built in) " + name })
	if err == nil && len(mistakes) > 0 {
		err = errors.New(mistakes[0].String())
	}
	return all, err
}

// Load reads the algorithms of a folder: every file whose name ends in .toml and
// does not begin with a dot. It leaves out files with mistakes and returns the
// mistakes.
func Load(folder string) ([]*algorithm.File, []algorithm.Mistake, error) {
	return read(os.DirFS(folder), func(name string) string { return filepath.Join(folder, name) })
}

// maxFile exceeds the limit of an algorithm file, which algorithm.Parse reports.
const maxFile = 1 << 20

func read(folder fs.FS, shown func(string) string) ([]*algorithm.File, []algorithm.Mistake, error) {
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		return nil, nil, err
	}
	var all []*algorithm.File
	var mistakes []algorithm.Mistake
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || !strings.HasSuffix(name, ".toml") || strings.HasPrefix(name, ".") {
			continue
		}
		text, err := readFile(folder, name)
		if err != nil {
			return nil, nil, err
		}
		a, wrong := algorithm.Parse(shown(name), text)
		if mistakes = append(mistakes, wrong...); len(wrong) == 0 {
			all = append(all, a)
		}
	}
	return all, mistakes, nil
}

// readFile reads a regular file. Others, such as a pipe, might never end.
func readFile(folder fs.FS, name string) (text []byte, err error) {
	info, err := fs.Stat(folder, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file: remove it from the folder of algorithms", name)
	}
	f, err := folder.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// Example returns a file that comes with the algorithms, which the settings of an
// [example] name as example:NAME.
func Example(name string) ([]byte, error) {
	if name != path.Base(name) {
		return nil, fs.ErrNotExist
	}
	return examples.ReadFile("examples/" + name)
}

// Examples returns the names of all example files.
func Examples() []string {
	var names []string
	entries, err := examples.ReadDir("examples")
	if err != nil {
		panic(err) // the folder is embedded
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return slices.Clip(names)
}
