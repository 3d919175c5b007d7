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

// sandboxDirs lists folders that are visible in every sandbox: if a program finds no file
// there, the file does not exist.
var sandboxDirs = []string{"/tmp", "/var/tmp", "/proc", "/dev", "/sys"}

// hiddenFileHint returns a hint to append to a failure message, if line is a sandboxed
// program's error message about a missing file that the sandbox hides. It does not check
// whether the file exists on the machine, because users can make a program print such
// lines.
func hiddenFileHint(j *app.Job, o *app.Outcome, alg *algorithm.File, line string) string {
	path, box := results.MissingPath(line), protocol.SandboxOf(o.Isolation)
	if path == "" || box == "" || alg == nil {
		return ""
	}
	reach := alg.AccessibleSandbox()
	seen := slices.Concat(sandboxDirs, reach.Read)
	if box == protocol.Bubblewrap { // a container has the system files of its image
		if seen = slices.Concat(seen, reach.Named); task.SystemShows(path) {
			return ""
		}
	}
	below := func(dir string) bool { return strings.HasPrefix(path+"/", filepath.Clean(dir)+"/") }
	if slices.ContainsFunc(seen, below) || strings.Contains(path, string(j.ID)) {
		return ""
	}
	return " Programs can access only the job's files and the paths listed in their algorithm file: if " + path +
		" is yours, upload it and name it in a setting; an administrator can list it under [sandbox]."
}
