package faults

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"molrun/app/client"
)

// resumableFile is an algorithm whose jobs write to the diary when each attempt
// begins and ends, and continue where the previous attempt stopped. A job locks
// its page while it runs. It keeps running if its directory is removed.
const resumableFile = `
format = 1
type = "resumable"
version = "1"
title = "Count steps"
retries = 8
resumable = true
max_runtime = "1h"
command = ["sh", "-c", '''
attempt=${{PWD%%/work}}
attempt=${{attempt##*/}}
exec 9>>"%[1]s/$1"
if ! flock -n 9; then
	echo "overlap $attempt $(date +%%s.%%N) 0" >>"%[1]s/$1"
	exit 9
fi
n=0
[ ! -e out/steps ] || while read -r step; do n=$step; done <out/steps
echo "begin $attempt $(date +%%s.%%N) $n" >&9
exec 8>>out/steps || exit 1
while [ "$n" -lt "$2" ]; do
	sleep 0.2
	n=$((n + 1))
	echo "$n" >&8
done
echo "result of $1" >out/result.txt || exit 1
echo "end $attempt $(date +%%s.%%N) $3" >&9
exit "$3"
''', "sh", "{settings.page}", "{settings.steps}", "{settings.code}"]

[[parameters]]
name = "page"
type = "string"
required = true

[[parameters]]
name = "steps"
type = "integer"
required = true
minimum = 0

[[parameters]]
name = "code"
type = "integer"
required = true
minimum = 0

[resources]
memory = "16MiB"
`

// briefFile is the same algorithm for jobs of few steps. It says that they are short, so that
// rows share processes from the first batch on, whatever else has run how long.
func briefFile() string {
	named := strings.NewReplacer("format = 1", "format = 2", `type = "resumable"`, `type = "brief"`)
	return named.Replace(resumableFile) + "\n[estimate]\nexpected_seconds = 0.2\n"
}

// briefJob is a job that ends at once.
func briefJob(name string) client.Submission {
	s := resumableJob(name, 0, 0)
	s.Type = "brief"
	return s
}

// stepTakes is the duration of a step of such a job.
const stepTakes = 200 * time.Millisecond

// resumableJob is a job of some steps that exits with a code.
func resumableJob(name string, steps, code int) client.Submission {
	settings := fmt.Sprintf(`{"page":%q,"steps":%d,"code":%d}`, name, steps, code)
	return client.Submission{Name: name, Type: "resumable", Settings: json.RawMessage(settings)}
}

// randomResumable is a job of random length; one of eight fails.
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
	begin, end time.Time // end is zero if it was killed
	resumed    bool
	code       int // its exit code
}

// page is a job's page of the diary.
type page struct {
	executions []execution
	overlaps   []int  // attempts that found another one running
	wrong      string // why the page can't be read
}

// readPage reads a job's page of the diary; it is empty if no attempt began.
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
		p.executions = append(p.executions, execution{attempt: attempt, begin: moment(at), resumed: number > 0})
	case word == "end" && last >= 0 && p.executions[last].attempt == attempt && p.executions[last].end.IsZero():
		p.executions[last].end, p.executions[last].code = moment(at), number
	case word == "overlap":
		p.overlaps = append(p.overlaps, attempt)
	default:
		p.wrong = fmt.Sprintf("unexpected line %q", line)
	}
}
