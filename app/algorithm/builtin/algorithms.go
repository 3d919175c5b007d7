// Package builtin holds the algorithm files that are part of the program, and loads those
// that a site adds. No other code distinguishes between the two.
package builtin

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"molrun/app/algorithm"
	"molrun/app/algorithm/folder"
)

//go:embed cg-binodal.toml cg-condensate.toml cg-idp.toml sequence-properties.toml structure-summary.toml
var files embed.FS

//go:embed examples
var examples embed.FS

// BuiltIn returns the algorithms included in this program. An error indicates a bug in
// the program.
func BuiltIn() ([]*algorithm.File, error) {
	all, mistakes, err := readDir(files, builtInName, fs.Sub)
	if err == nil && len(mistakes) > 0 {
		err = errors.New(mistakes[0].String())
	}
	for _, a := range all {
		a.BuiltIn = true
	}
	return all, err
}

func builtInName(name string) string { return "(built in) " + name }

// LoadFolder reads the algorithms in a folder: every file whose name ends in .toml, and
// every folder with a file algorithm.toml. It skips names that begin with a dot and files
// that contain errors, and returns the errors in those files.
func LoadFolder(folder string) ([]*algorithm.File, []algorithm.Mistake, error) {
	shown := func(name string) string { return filepath.Join(folder, name) }
	return readDir(os.DirFS(folder), shown, func(_ fs.FS, name string) (fs.FS, error) { return openFolder(shown(name)) })
}

// openFolder opens a folder as a file system that symbolic links cannot escape.
func openFolder(path string) (fs.FS, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return root.FS(), nil // stays open while the algorithm is available
}

// maxFile exceeds the size limit of an algorithm file, so that algorithm.Parse reports
// the error.
const maxFile = 1 << 20

// readDir reads the algorithms of a directory; open opens a folder in it.
func readDir(in fs.FS, shown func(string) string, open func(fs.FS, string) (fs.FS, error)) ([]*algorithm.File, []algorithm.Mistake, error) {
	entries, err := fs.ReadDir(in, ".")
	if err != nil {
		return nil, nil, err
	}
	var all []*algorithm.File
	var mistakes []algorithm.Mistake
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, ".") {
			continue
		}
		var a *algorithm.File
		var wrong []algorithm.Mistake
		switch info, err := fs.Stat(in, name); {
		case err == nil && info.IsDir():
			a, wrong, err = readFolder(in, name, shown, open)
			if err != nil {
				return nil, nil, err
			}
		case strings.HasSuffix(name, ".toml"):
			text, err := readFile(in, name)
			if err != nil {
				return nil, nil, err
			}
			a, wrong = algorithm.Parse(shown(name), text)
		}
		for _, m := range wrong {
			m.Type = typeOf(in, name)
			mistakes = append(mistakes, m)
		}
		if len(wrong) == 0 && a != nil {
			all = append(all, a)
		}
	}
	return all, mistakes, nil
}

// typeLine matches the line that declares the type in an algorithm file, even if the rest
// of the file is invalid.
var typeLine = regexp.MustCompile(`(?m)^\s*type\s*=\s*["']([^"'\n]*)["']`)

// typeOf returns the type that an invalid file or folder would define: the type it
// declares, or otherwise its name.
func typeOf(in fs.FS, name string) string {
	file := name
	if !strings.HasSuffix(name, ".toml") {
		file = path.Join(name, folder.Main)
	}
	if text, err := readFile(in, file); err == nil {
		head, _, _ := strings.Cut(string(text), "\n[")
		if found := typeLine.FindStringSubmatch(head); found != nil {
			return found[1]
		}
	}
	return strings.TrimSuffix(name, ".toml")
}

// readFolder reads the algorithm in a folder. It returns nil if there is none.
func readFolder(in fs.FS, name string, shown func(string) string, open func(fs.FS, string) (fs.FS, error)) (*algorithm.File, []algorithm.Mistake, error) {
	if !isAlgorithm(in, name) {
		if misnamed, _ := fs.Glob(in, path.Join(name, "*.toml")); len(misnamed) > 0 {
			return nil, []algorithm.Mistake{{File: shown(misnamed[0]), Line: 1, Msg: "in a folder, the algorithm file must be named " + folder.Main}}, nil
		}
		return nil, nil, nil
	}
	from, err := open(in, name)
	if err != nil {
		return nil, nil, err
	}
	a, mistakes, err := parseFolder(from, filepath.Join(shown(name), folder.Main))
	return a, mistakes, err
}

// isAlgorithm reports whether a folder contains the file of an algorithm.
func isAlgorithm(in fs.FS, name string) bool {
	_, err := fs.Stat(in, path.Join(name, folder.Main))
	return err == nil
}

func parseFolder(from fs.FS, file string) (*algorithm.File, []algorithm.Mistake, error) {
	f, wrong, err := folder.ReadFolder(from)
	if err != nil {
		return nil, nil, fmt.Errorf("read the folder of %s: %w", file, err)
	}
	var mistakes []algorithm.Mistake
	for _, msg := range wrong {
		mistakes = append(mistakes, algorithm.Mistake{File: file, Line: 1, Msg: msg})
	}
	if len(wrong) > 0 {
		return nil, mistakes, nil
	}
	a, mistakes := algorithm.ParseFolder(file, f)
	return a, mistakes, nil
}

// Within returns the paths of the algorithm files and algorithm folders at a path: the
// path itself, or the entries of a folder of algorithms.
func Within(path string) (paths []string) {
	in := os.DirFS(path)
	if isAlgorithm(in, ".") {
		return []string{path}
	}
	entries, _ := fs.ReadDir(in, ".") // ReadAlgorithm reports the error
	for _, e := range entries {
		below, _ := fs.Glob(in, e.Name()+"/*.toml")
		if !strings.HasPrefix(e.Name(), ".") && (strings.HasSuffix(e.Name(), ".toml") || len(below) > 0) {
			paths = append(paths, filepath.Join(path, e.Name()))
		}
	}
	if len(paths) == 0 {
		return []string{path}
	}
	return paths
}

// ReadAlgorithm reads an algorithm file or an algorithm folder.
func ReadAlgorithm(path string) (*algorithm.File, []algorithm.Mistake, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.IsDir() && filepath.Base(path) != folder.Main {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		a, mistakes := algorithm.Parse(path, text)
		return a, mistakes, nil
	}
	if !info.IsDir() {
		path = filepath.Dir(path)
	}
	from, err := openFolder(path)
	if err != nil {
		return nil, nil, err
	}
	return parseFolder(from, filepath.Join(path, folder.Main))
}

// readFile reads a regular file. It rejects other kinds of files because reading a pipe,
// for example, might never end.
func readFile(folder fs.FS, name string) (text []byte, err error) {
	info, err := fs.Stat(folder, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file: remove it from the algorithms folder", name)
	}
	f, err := folder.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// Example returns an example file that is included with the algorithms. The settings of
// an [example] refer to it as example:NAME.
func Example(name string) ([]byte, error) {
	if name != path.Base(name) {
		return nil, fs.ErrNotExist
	}
	return examples.ReadFile("examples/" + name)
}

// ExampleOf returns the file that the [example] of an algorithm refers to as
// example:NAME. It comes from the algorithm's folder or, if it has none, from the files
// included with the algorithms.
func ExampleOf(a *algorithm.File, name string) ([]byte, error) {
	if a.Folder != nil {
		return a.Folder.ReadFile(path.Join(folder.Examples, name))
	}
	return Example(name)
}

// Examples returns the names of all included example files.
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
