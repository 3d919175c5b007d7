package runner

import (
	"path/filepath"
	"slices"
	"strings"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/algorithm/results"
	"molrun/app/task"
	"molrun/app/task/protocol"
)

// seenInside are folders that programs see in every sandbox; there, a file that is missing
// is missing.
var seenInside = []string{"/tmp", "/var/tmp", "/proc", "/dev", "/sys"}

// unseen returns a hint, to be appended to the sentence about a failure, where a program
// in a sandbox says in line that a file is not there which it would not see. It does not look whether
// there is one on the machine, because users write such lines as well.
func unseen(j *app.Job, o *app.Outcome, alg *algorithm.File, line string) string {
	path, box := results.MissingPath(line), protocol.Box(o.Isolation)
	if path == "" || box == "" || alg == nil {
		return ""
	}
	reach := alg.Reach()
	seen := slices.Concat(seenInside, reach.Read)
	if box == protocol.Bubblewrap { // a container has the system of its image
		if seen = slices.Concat(seen, reach.Named); task.SystemShows(path) {
			return ""
		}
	}
	below := func(dir string) bool { return strings.HasPrefix(path+"/", filepath.Clean(dir)+"/") }
	if slices.ContainsFunc(seen, below) || strings.Contains(path, string(j.ID)) {
		return ""
	}
	return " Programs see only the job's files and what their algorithm file lists: if " + path +
		" is yours, upload it and name it in a setting; an administrator can list it under [sandbox]."
}
