package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/client"
	"molrun/app/test/must"
	"molrun/app/test/need"
)

// diaryFile is an algorithm whose jobs append to a diary outside their
// directories when they begin and when they end. Each job has a page, one file,
// and locks it while it runs, so that overlapping attempts are noticed.
const diaryFile = `
format = 1
type = "diary"
version = "1"
title = "Keep a diary"
retries = 3
max_runtime = "1h"
command = ["sh", "-c", '''
exec 9>>"%[1]s/$1"
if command -v flock >/dev/null && ! flock -n 9; then
	echo overlap >>"%[1]s/$1"
	exit 9
fi
echo begin >&9
echo "$1 begins"
sleep "$2"
if [ -n "$4" ]; then
	until [ -e "$4" ]; do sleep 0.05; done
fi
head -c "$3" /dev/zero >out/zeros || exit 1
echo "result of $1" >out/result.txt || exit 1
echo end >&9
''', "sh", "{settings.page}", "{settings.seconds}", "{settings.bytes}", "{settings.gate}"]

[[parameters]]
name = "page"
type = "string"
required = true

[[parameters]]
name = "seconds"
type = "number"
default = 0

[[parameters]]
name = "bytes"
type = "integer"
default = 0

[[parameters]]
name = "gate"
type = "string"
default = ""

[[parameters]]
name = "note"
type = "string"

[resources]
memory = "16MiB"
`

// shortDiaryFile is the same algorithm, of which the file says that jobs are short: rows of
// batches share processes from the first on.
func shortDiaryFile() string {
	return strings.Replace(diaryFile, "format = 1", "format = 2", 1) + "\n[estimate]\nexpected_seconds = 0.2\n"
}

// jobPrograms are the programs that diaryFile and resumableFile run.
var jobPrograms = []string{"sh", "sleep", "head", "flock", "date"}

// linkPrograms creates the only directory in the service's PATH. It lacks bwrap
// because sandboxed jobs could not write the diary.
func linkPrograms(t *testing.T, dir string) {
	t.Helper()
	must.OK(t, os.Mkdir(dir, 0o700))
	for _, name := range jobPrograms {
		path, err := exec.LookPath(name)
		if err != nil {
			need.Skip(t, "%s is not installed", name)
		}
		must.OK(t, os.Symlink(path, filepath.Join(dir, name)))
	}
}

// withNote adds a note of the given length to the settings, so that the
// database grows.
func withNote(s client.Submission, letters int) client.Submission {
	if letters == 0 {
		return s
	}
	return withSetting(s, "note", strings.Repeat("n", letters))
}

// withGate makes the job wait after its beginning until the file exists.
func withGate(s client.Submission, path string) client.Submission {
	return withSetting(s, "gate", path)
}

func withSetting(s client.Submission, name, value string) client.Submission {
	s.Settings = fmt.Appendf(nil, `%s,%q:%q}`, bytes.TrimSuffix(s.Settings, []byte("}")), name, value)
	return s
}

// diaryJob is a job that runs for the given time and writes that many bytes in
// addition to its result.
func diaryJob(name string, seconds float64, bytes int64) client.Submission {
	settings := fmt.Sprintf(`{"page":%q,"seconds":%.3f,"bytes":%d}`, name, seconds, bytes)
	return client.Submission{Name: name, Type: "diary", Settings: json.RawMessage(settings)}
}

// diaryResult is the result of a completed job.
func diaryResult(name string) string { return "result of " + name + "\n" }

// diary reads a job's page; it is empty if the job never began.
func diary(t testing.TB, dir, name string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if os.IsNotExist(err) {
		return nil
	}
	must.OK(t, err)
	return strings.Fields(string(text))
}
