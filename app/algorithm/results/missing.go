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

// MissingPath returns the absolute path of which a line of a program says that it is not
// there, "" if it says so of none.
func MissingPath(line string) string {
	if !missingWords.MatchString(line) {
		return ""
	}
	found := absolutePath.FindStringSubmatch(line)
	if found == nil {
		return ""
	}
	return path.Clean(strings.TrimRight(found[1], "."))
}
