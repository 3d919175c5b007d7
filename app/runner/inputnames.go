package runner

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"molrun/app/algorithm"
)

// longestStem limits the length of the part kept of a user's file name.
const longestStem = 100

// inputNames assigns names to a job's files below its input folder.
type inputNames struct {
	algorithm *algorithm.File
	taken     map[string]bool // names of files in lists, in lower case
}

// assign returns a name for the next file of a setting. A single file is named after its
// setting, with the declared extension that filename has. Files of a list go into a
// folder named after the setting and keep the plain characters of the user's names,
// because programs name their results after them.
func (n *inputNames) assign(setting, filename string) string {
	p := n.algorithm.Parameters.Named(setting)
	if p == nil || len(p.File) == 0 {
		return setting
	}
	found := p.Extension(filename)
	ext := cmp.Or(found, p.File[0])
	if !p.Many {
		return setting + ext
	}
	stem := strings.Trim(strings.Map(plainLetter, filename[:len(filename)-len(found)]), ".-")
	stem = cmp.Or(stem[:min(len(stem), longestStem)], "file")
	name := stem + ext
	for k := 2; n.taken[setting+"/"+strings.ToLower(name)]; k++ {
		name = fmt.Sprintf("%s-%d%s", stem, k, ext)
	}
	n.taken[setting+"/"+strings.ToLower(name)] = true
	return filepath.Join(setting, name)
}

// plainLetter replaces characters that programs or shells might interpret.
func plainLetter(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-', r == '.':
		return r
	}
	return '_'
}
