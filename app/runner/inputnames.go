package runner

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"molrun/app/algorithm"
)

// longestStem bounds what is kept of a user's name for a file.
const longestStem = 100

// inputNames names the files of a job below its folder of inputs.
type inputNames struct {
	algorithm *algorithm.File
	taken     map[string]bool // names of lists, in lower case
}

// of returns a name for the next file of a setting. One that is alone is called after its
// setting, with the declared extension that its name has. Those of a list lie in a folder
// of that name and keep what is plain of the names that users gave: programs call what
// they find after them.
func (n *inputNames) of(setting, filename string) string {
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

// plainLetter replaces what programs or shells may take for something else.
func plainLetter(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-', r == '.':
		return r
	}
	return '_'
}
