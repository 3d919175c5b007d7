package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"molrun/app/client"
	"molrun/app/test/must"
)

// stageFile is an algorithm whose jobs note in one journal when they begin and end, and
// pass on the file that they read. One that fails does so until there is a file beside the
// journal that says otherwise.
const stageFile = `
format = 1
type = "stage"
version = "1"
title = "A stage of a pipeline"
retries = 3
command = ["sh", "-c", '''
echo "$1 begin" >>"%[1]s/journal"
if [ "$3" = true ] && [ ! -e "%[1]s/mended" ]; then exit 7; fi
sleep "$2"
if [ -n "$4" ]; then
	while read -r line; do echo "$line"; done <"$4" >out/result.txt || exit 1
fi
echo "$1" >>out/result.txt || exit 1
echo "$1 end" >>"%[1]s/journal"
''', "sh", "{settings.name}", "{settings.seconds}", "{settings.fails}", { if = "settings.input", args = ["{files.input}"] }]

[[parameters]]
name = "name"
type = "string"
required = true

[[parameters]]
name = "seconds"
type = "number"
default = 0

[[parameters]]
name = "fails"
type = "boolean"
default = false

[[parameters]]
name = "input"
file = [".txt"]

[resources]
memory = "16MiB"
`

// stages is a pipeline: a first job, many that read its result, and a last one after all
// of these that reads the result of one.
type stages struct {
	*server
	name  string
	rows  []string
	fails bool   // the first job fails until it is mended
	id    string // of the batch, once a response had it
}

const stageRows = 50

func newStages(s *server, number int, random *rand.Rand) *stages {
	p := &stages{server: s, name: fmt.Sprint("p", number), fails: random.IntN(2) == 0}
	for i := range stageRows {
		p.rows = append(p.rows, fmt.Sprintf("%s-run-%d", p.name, i))
	}
	return p
}

func (p *stages) first() string { return p.name + "-first" }
func (p *stages) last() string  { return p.name + "-last" }

func (p *stages) batch() client.BatchSubmission {
	stage := func(name, more string, after ...string) client.Submission {
		settings := fmt.Sprintf(`{"name":%q,"seconds":0.0%d%s}`, name, len(name)%10, more)
		return client.Submission{Name: name, Type: "stage", Settings: json.RawMessage(settings), After: after}
	}
	b := client.BatchSubmission{Name: p.name, Jobs: []client.Submission{
		stage(p.last(), fmt.Sprintf(`,"input":"job:%s/result.txt"`, p.rows[7]), p.rows...),
		stage(p.first(), fmt.Sprintf(`,"fails":%v`, p.fails)),
	}}
	for _, row := range p.rows {
		b.Jobs = append(b.Jobs, stage(row, fmt.Sprintf(`,"input":"job:%s/result.txt"`, p.first())))
	}
	return b
}

// step does what is next for the pipeline, and reports whether it is completed. Every
// request may be sent again.
func (p *stages) step(ctx context.Context, c *client.Client) (done bool, err error) {
	if p.id == "" {
		job, err := c.SubmitBatch(ctx, p.batch())
		if err != nil {
			return false, err
		}
		p.id = job.ID
	}
	job, err := c.Job(ctx, p.name)
	if err != nil {
		return false, err
	}
	if job.ID != p.id {
		p.t.Errorf("pipeline %s was %s and is now %s", p.name, p.id, job.ID)
	}
	if job.Status != "FAILED" {
		return job.Status == "COMPLETED", nil
	}
	first, err := c.Job(ctx, p.first())
	if err != nil || first.Status != "FAILED" {
		return false, err // its dependants are being reopened
	}
	if !p.fails {
		p.t.Errorf("the first job of %s failed: %+v", p.name, first.Failure)
	}
	must.OK(p.t, os.WriteFile(p.path("diary", "mended"), nil, 0o600))
	_, err = c.Retry(ctx, p.first())
	return false, except(err, "JOB_NOT_FAILED")
}

// inspect compares the completed pipeline with the journal.
func (p *stages) inspect(ctx context.Context, c *client.Client, journal []string) {
	p.t.Helper()
	begins, ends := map[string][]int{}, map[string][]int{}
	for at, line := range journal {
		switch name, what, _ := strings.Cut(line, " "); what {
		case "begin":
			begins[name] = append(begins[name], at)
		case "end":
			ends[name] = append(ends[name], at)
		}
	}
	ended := func(name string) int {
		if len(ends[name]) != 1 {
			p.t.Errorf("%s ended %d times, want once", name, len(ends[name]))
			return 0
		}
		return ends[name][0]
	}
	for _, row := range p.rows {
		if began := begins[row]; len(began) == 0 || began[0] < ended(p.first()) || begins[p.last()][0] < ended(row) {
			p.t.Errorf("%s did not run between the first and the last job: it began at %v, ended at %v", row, began, ends[row])
		}
	}
	ended(p.last())
	rows := 0
	for job, err := range c.Jobs(ctx, client.JobFilter{Batch: p.name, WholeOrganization: true, PageSize: 100}) {
		must.OK(p.t, err)
		rows++
		if job.Status != "COMPLETED" || len(begins[job.Name]) > job.Attempts {
			p.t.Errorf("%s is %s after %d attempts and began %d times", job.Name, job.Status, job.Attempts, len(begins[job.Name]))
		}
	}
	if rows != stageRows+2 {
		p.t.Errorf("pipeline %s has %d jobs, want %d", p.name, rows, stageRows+2)
	}
	link, err := c.Result(ctx, client.ResultRequest{Job: p.last(), File: "result.txt"})
	must.OK(p.t, err)
	text, err := get(ctx, link.DownloadURL)
	must.OK(p.t, err)
	if want := p.first() + "\n" + p.rows[7] + "\n" + p.last() + "\n"; text != want {
		p.t.Errorf("the last result of %s is %q, want %q", p.name, text, want)
	}
}

// journal returns what jobs noted.
func (s *server) journal() []string {
	s.t.Helper()
	text, err := os.ReadFile(s.path("diary", "journal"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// The service is killed at random moments while pipelines of three stages run, one after
// the other. In some the first job fails, with it all others, and all are reopened when it
// is tried again. Nothing may be lost, doubled or stuck.
func TestPipelinesSurviveKills(t *testing.T) {
	t.Parallel()
	s := newServer(t, "", "[runner]\ncpus = 8\nmemory = \"1GiB\"\ngrace = \"1s\"\n")
	must.OK(t, os.WriteFile(s.path("algorithms", "stage.toml"), fmt.Appendf(nil, stageFile, s.path("diary")), 0o600))
	random := rand.New(rand.NewPCG(*seed, 3))
	ctx, cancel := context.WithTimeout(context.Background(), 5*patience+time.Duration(*kills)*10*time.Second)
	defer cancel()
	done := 0
	p := newStages(s, done, random)
	forward := func(c *client.Client) error {
		completed, err := p.step(ctx, c)
		if completed {
			p.inspect(ctx, c, s.journal())
			done++
			_ = os.Remove(s.path("diary", "mended"))
			p = newStages(s, done, random)
		}
		return err
	}
	for n := range *kills {
		s.start()
		c := s.client()
		timer := time.AfterFunc(time.Duration(random.IntN(1500))*time.Millisecond, func() { _ = s.process.Process.Kill() })
		for !s.ended() {
			if _, err := p.step(ctx, c); err != nil {
				p.refused(err)
			}
			time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond)
		}
		timer.Stop()
		c.Close()
		if n%10 == 9 {
			s.check()
		}
		if t.Failed() {
			t.Fatalf("after kill %d of seed %d:\n%s", n+1, *seed, s.log.tail())
		}
		// Between two kills a completed pipeline makes room for the next.
		s.start()
		c = s.client()
		if err := forward(c); err != nil {
			p.refused(err)
		}
		c.Close()
		s.kill()
	}
	s.start()
	c := s.client()
	for want := done + 1; done < want && ctx.Err() == nil && !t.Failed(); time.Sleep(20 * time.Millisecond) {
		must.OK(t, forward(c))
	}
	if ctx.Err() != nil {
		t.Errorf("pipeline %s is stuck", p.name)
	}
	v := &verdict{}
	s.findOrphans(v)
	s.stop()
	s.check("--deep")
	v.report(t)
	t.Logf("%d kills, %d pipelines of %d jobs, seed %d", *kills, done, stageRows+2, *seed)
}

// refused fails the test if the service answered with an error; without an answer it was
// killed.
func (p *stages) refused(err error) {
	p.t.Helper()
	if answer, ok := errors.AsType[*client.Error](err); ok {
		p.t.Errorf("pipeline %s: %v", p.name, answer)
	}
}
