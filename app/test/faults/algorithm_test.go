package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app/client"
	"molrun/app/test/must"
)

// diaryFile is an algorithm whose jobs append to a diary outside their directories when
// they begin and when they end. Each job has its own page, which is a file that it locks
// while it runs, so that overlapping attempts are detected. A job with several steps
// continues where the previous attempt stopped, if that attempt's output exists, and
// keeps running if its directory is removed.
const diaryFile = `
format = 1
type = %[2]q
version = "1"
title = "Keep a diary"
retries = %[3]d
resumable = %[4]v
max_runtime = "1h"
command = ["sh", "-c", '''
attempt=${{PWD%%/work}}
attempt=${{attempt##*/}}
exec 9>>"%[1]s/$1"
if command -v flock >/dev/null && ! flock -n 9; then
	echo "overlap $attempt $(date +%%s.%%N) 0" >>"%[1]s/$1"
	exit 9
fi
n=0
[ ! -e out/steps ] || while read -r step; do n=$step; done <out/steps
echo "begin $attempt $(date +%%s.%%N) $n" >&9
echo "$1 begins"
sleep "$2"
if [ -n "$4" ]; then
	until [ -e "$4" ]; do sleep 0.05; done
fi
[ "$5" -eq 0 ] || exec 8>>out/steps || exit 1
while [ "$n" -lt "$5" ]; do
	sleep 0.2
	n=$((n + 1))
	echo "$n" >&8
done
if [ -n "$7" ]; then read -r line <"$7" || exit 1; fi
head -c "$3" /dev/zero >out/zeros || exit 1
echo "result of $1" >out/result.txt || exit 1
echo "end $attempt $(date +%%s.%%N) $6" >&9
exit "$6"
''', "sh", "{settings.page}", "{settings.seconds}", "{settings.bytes}", "{settings.gate}", "{settings.steps}", "{settings.code}",
	{ if = "settings.input", args = ["{files.input}"] }]

[resources]
memory = "16MiB"

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
name = "steps"
type = "integer"
default = 0

[[parameters]]
name = "code"
type = "integer"
default = 0

[[parameters]]
name = "input"
file = [".txt"]

[[parameters]]
name = "note"
type = "string"
`

// diaryKind is a variant of diaryFile.
type diaryKind struct {
	typ       string
	retries   int
	resumable bool
	short     bool // the file declares jobs short, so that jobs of batches share processes from the first one on
}

var (
	plainDiary     = diaryKind{typ: "diary", retries: 3}
	shortDiary     = diaryKind{typ: "diary", retries: 3, short: true}
	resumableDiary = diaryKind{typ: "resumable", retries: 8, resumable: true}
	briefDiary     = diaryKind{typ: "brief", retries: 8, resumable: true, short: true}
)

// file returns the algorithm file, with the directory of the diary.
func (k diaryKind) file(diary string) []byte {
	text := fmt.Appendf(nil, diaryFile, diary, k.typ, k.retries, k.resumable)
	if k.short {
		text = append(text, "\n[estimate]\nexpected_seconds = 0.2\n"...)
	}
	return text
}

// addAlgorithm writes an algorithm file.
func (s *server) addAlgorithm(k diaryKind) {
	s.t.Helper()
	must.OK(s.t, os.WriteFile(s.path("algorithms", k.typ+".toml"), k.file(s.path("diary")), 0o600))
}

// jobPrograms are the programs that diaryFile runs.
var jobPrograms = []string{"sh", "sleep", "head", "flock", "date"}

// linkPrograms creates the only directory on the service's PATH. It contains no bwrap,
// because sandboxed jobs could not write the diary.
func linkPrograms(t *testing.T, dir string) {
	t.Helper()
	must.OK(t, os.Mkdir(dir, 0o700))
	for _, name := range jobPrograms {
		must.OK(t, os.Symlink(must.Installed(t, name), filepath.Join(dir, name)))
	}
}

// withNote adds a note of the given length to the settings, so that the database grows
// quickly.
func withNote(s client.Submission, letters int) client.Submission {
	if letters == 0 {
		return s
	}
	return withSetting(s, "note", strings.Repeat("n", letters))
}

// withGate makes the job wait after it has begun until the file exists.
func withGate(s client.Submission, path string) client.Submission {
	return withSetting(s, "gate", path)
}

func withSetting(s client.Submission, name, value string) client.Submission {
	s.Settings = fmt.Appendf(nil, `%s,%q:%q}`, bytes.TrimSuffix(s.Settings, []byte("}")), name, value)
	return s
}

// diaryJob returns a job that runs for the given time and writes the given number of
// bytes in addition to its result.
func diaryJob(name string, seconds float64, bytes int64) client.Submission {
	settings := fmt.Sprintf(`{"page":%q,"seconds":%.3f,"bytes":%d}`, name, seconds, bytes)
	return client.Submission{Name: name, Type: "diary", Settings: json.RawMessage(settings)}
}

// diaryResult returns the result of a completed job.
func diaryResult(name string) string { return "result of " + name + "\n" }

// briefJob returns a job that ends immediately.
func briefJob(name string) client.Submission {
	s := resumableJob(name, 0, 0)
	s.Type = "brief"
	return s
}

// stepTakes is the duration of a step of a job.
const stepTakes = 200 * time.Millisecond

// resumableJob returns a job that has the given number of steps and exits with the given
// code.
func resumableJob(name string, steps, code int) client.Submission {
	settings := fmt.Sprintf(`{"page":%q,"steps":%d,"code":%d}`, name, steps, code)
	return client.Submission{Name: name, Type: "resumable", Settings: json.RawMessage(settings)}
}

// randomResumable returns a job with a random number of steps. One in eight fails.
func randomResumable(r *rand.Rand, name string) client.Submission {
	steps := []int{0, 1, 5, 20, 60}[r.IntN(5)]
	if r.IntN(8) == 0 {
		return resumableJob(name, steps, 3)
	}
	return resumableJob(name, steps, 0)
}

// execution is the diary's record of one attempt.
type execution struct {
	attempt    int
	begin, end time.Time // end is zero if the attempt was killed
	code       int       // exit code
}

// page is a job's page of the diary.
type page struct {
	executions []execution
	overlaps   []int  // attempts that began while another was running
	wrong      string // the reason that the page is invalid, or ""
}

// readPage parses a job's page of the diary. The page is empty if no attempt has begun.
func readPage(file string) (p page) {
	text, err := os.ReadFile(file)
	if err != nil {
		if !os.IsNotExist(err) {
			p.wrong = err.Error()
		}
		return p
	}
	for line := range strings.Lines(string(text)) {
		p.parse(strings.TrimSpace(line))
	}
	return p
}

func (p *page) parse(line string) {
	var word string
	var attempt, number int
	var at float64
	if _, err := fmt.Sscan(line, &word, &attempt, &at, &number); err != nil {
		p.wrong = fmt.Sprintf("%q: %v", line, err)
		return
	}
	last := len(p.executions) - 1
	switch {
	case word == "begin":
		p.executions = append(p.executions, execution{attempt: attempt, begin: moment(at)})
	case word == "end" && last >= 0 && p.executions[last].attempt == attempt && p.executions[last].end.IsZero():
		p.executions[last].end, p.executions[last].code = moment(at), number
	case word == "overlap":
		p.overlaps = append(p.overlaps, attempt)
	default:
		p.wrong = fmt.Sprintf("unexpected line %q", line)
	}
}

// moment converts a time in seconds, as the scripts write it.
func moment(seconds float64) time.Time { return time.UnixMicro(int64(seconds * 1e6)) }

// readDiary reads the page of a job.
func (s *server) readDiary(name string) page { return readPage(s.path("diary", name)) }

// begun reports whether an attempt of a job has begun.
func (s *server) begun(name string) bool { return len(s.readDiary(name).executions) > 0 }
