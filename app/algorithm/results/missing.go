package results

import (
	"path"
	"regexp"
	"strings"
)

var (
	missingWords = regexp.MustCompile(`(?i)no such file|(?:file|path|folder|directory) not found|cannot find the|does not exist|doesn't exist`)
	absolutePath = regexp.MustCompile("(?:^|[\\s'\"`(=:<])(/[^\\s'\"`():;,<>*?]+)")
)

// MissingPath returns the absolute path that a line of a program's output reports as
// missing, or "" if there is none.
func MissingPath(line string) string {
	if !missingWords.MatchString(line) {
		return ""
	}
	found := absolutePath.FindAllStringSubmatch(line, 2)
	if found == nil {
		return ""
	}
	name := found[0][1]
	if len(found) == 2 && strings.HasPrefix(line, name+": ") { // the name of the program that prints the line
		name = found[1][1]
	}
	return path.Clean(strings.TrimRight(name, "."))
}
