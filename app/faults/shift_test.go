package faults

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"molrun/web/client"
)

// shiftFile is an algorithm whose jobs note in the diary when which attempt
// begins and ends, on whatever node, and go on where the attempt before left
// off. Each holds its page locked while it lives, and does not notice when its
// directory goes.
const shiftFile = `
format = 1
type = "shift"
version = "1"
title = "Work in turns"
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

// stepTakes is how long a step of such a job takes.
const stepTakes = 200 * time.Millisecond

// shiftJob is a job of some steps that ends with a code.
func shiftJob(name string, steps, code int) client.Submission {
	settings := fmt.Sprintf(`{"page":%q,"steps":%d,"code":%d}`, name, steps, code)
	return client.Submission{Name: name, Type: "shift", Settings: json.RawMessage(settings)}
}

// anyShift is a job of some length; one of eight fails.
func anyShift(r *rand.Rand, name string) client.Submission {
	steps := []int{0, 1, 5, 20, 60}[r.IntN(5)]
	if r.IntN(8) == 0 {
		return shiftJob(name, steps, 3)
	}
	return shiftJob(name, steps, 0)
}

// shift is what the program of one attempt has noted.
type shift struct {
	attempt    int
	begin, end time.Time // end is zero where it was cut short
	resumed    bool
	code       int // with which it was going to end
}

// page is what a job's attempts have noted, in order.
type page struct {
	shifts   []shift
	overlaps []int  // attempts that found another one alive
	wrong    string // what makes no sense
}

// readPage reads a job's page of the diary; it is empty where no attempt began.
func readPage(file string) (p page) {
	text, err := os.ReadFile(file)
	if err != nil {
		if !os.IsNotExist(err) {
			p.wrong = err.Error()
		}
		return p
	}
	for line := range strings.Lines(string(text)) {
		p.take(strings.TrimSpace(line))
	}
	return p
}

func (p *page) take(line string) {
	var word string
	var attempt, number int
	var at float64
	if _, err := fmt.Sscan(line, &word, &attempt, &at, &number); err != nil {
		p.wrong = fmt.Sprintf("%q: %v", line, err)
		return
	}
	last := len(p.shifts) - 1
	switch {
	case word == "begin":
		p.shifts = append(p.shifts, shift{attempt: attempt, begin: moment(at), resumed: number > 0})
	case word == "end" && last >= 0 && p.shifts[last].attempt == attempt && p.shifts[last].end.IsZero():
		p.shifts[last].end, p.shifts[last].code = moment(at), number
	case word == "overlap":
		p.overlaps = append(p.overlaps, attempt)
	default:
		p.wrong = fmt.Sprintf("%q does not follow what stands above it", line)
	}
}
