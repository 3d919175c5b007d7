package simulation

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"molrun/app"
	"molrun/app/apikey"
)

// simFiles are the algorithms: one that is retried after lost attempts, and one
// that is not.
var simFiles = []string{`
format = 1
type = "long"
version = "1"
title = "Pretend to compute"
retries = 1
resumable = true
max_runtime = "5m"
command = ["sh", "-c", "exit 0", "{settings_file}", "{out}"]

[[parameters]]
name = "cpus"
type = "integer"
minimum = 1
default = 1

[[parameters]]
name = "gpus"
type = "integer"
minimum = 0
default = 0

[[parameters]]
name = "before"
file = [".txt"]

[resources]
cpus = "{settings.cpus}"
gpus = "{settings.gpus}"
memory = "1MiB"
`, `
format = 1
type = "short"
version = "1"
title = "Pretend to compute, once"
max_runtime = "1m"
command = ["sh", "-c", "exit 0", "{settings_file}", "{out}"]

[[parameters]]
name = "cpus"
type = "integer"
minimum = 1
default = 1

[resources]
cpus = "{settings.cpus}"
memory = "256MiB"
`}

// The users, of two organizations that never see each other.
var (
	ann   = app.Caller{Organization: "lab", Email: "ann@lab.example", Role: apikey.Member}
	bob   = app.Caller{Organization: "lab", Email: "bob@lab.example", Role: apikey.Member}
	chief = app.Caller{Organization: "lab", Email: "chief@lab.example", Role: apikey.Admin}
	eve   = app.Caller{Organization: "firm", Email: "eve@firm.example", Role: apikey.Member}
	boss  = app.Caller{Organization: "firm", Email: "boss@firm.example", Role: apikey.Admin}

	users         = []app.Caller{ann, ann, bob, bob, chief, eve, boss}
	admins        = []app.Caller{chief, boss}
	organizations = []string{"lab", "firm"}
)

// submission is a job or a batch that a user submits.
type submission struct {
	name     string
	typ      string
	rows     []jobSettings // a job has one
	rowNames []string      // of a batch; nil for the default names
	batch    bool
	table    bool // of a batch: its rows are sent as a table
	priority int
	after    []string // names of jobs that have to finish before
	any      bool     // in any way
	faulty   string   // why it must be refused; "" if it is valid
}

// jobSettings is the settings of one job.
type jobSettings struct {
	cpus, gpus int
	explicit   bool   // defaults are written explicitly
	before     string // name of the job whose result is read
}

func (w jobSettings) settings(typ string) string {
	var members []string
	if w.cpus != 1 || w.explicit {
		members = append(members, fmt.Sprintf(`"cpus":%d`, w.cpus))
	}
	if typ == "long" && (w.gpus != 0 || w.explicit) {
		members = append(members, fmt.Sprintf(`"gpus":%d`, w.gpus))
	}
	if w.before != "" {
		members = append(members, fmt.Sprintf(`"before":"job:%s/%s"`, w.before, resultFile))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// body returns the request body. Equal submissions have equal bodies.
func (s *submission) body() string {
	var all []string
	for _, w := range s.rows {
		all = append(all, w.settings(s.typ))
	}
	after := ""
	if s.after != nil {
		after = fmt.Sprintf(`,"after":["%s"],"afterAny":%v`, strings.Join(s.after, `","`), s.any)
	}
	if !s.batch {
		return fmt.Sprintf(`{"jobName":%q,"type":%q,"settings":%s,"priority":%d%s}`, s.name, s.typ, all[0], s.priority, after)
	}
	names := ""
	if s.rowNames != nil {
		names = fmt.Sprintf(`,"jobNames":["%s"]`, strings.Join(s.rowNames, `","`))
	}
	return fmt.Sprintf(`{"batchName":%q,"type":%q,"settings":[%s],"priority":%d%s%s,"table":%v}`, s.name, s.typ, strings.Join(all, ","), s.priority, names, after, s.table)
}

// tableText returns the rows of a batch as CSV.
func (s *submission) tableText() []byte {
	columns := []string{"cpus"}
	if s.typ == "long" {
		columns = append(columns, "gpus", "before")
	}
	text := []byte("jobName," + strings.Join(columns, ",") + "\n")
	for i, w := range s.rows {
		var settings map[string]any
		_ = json.Unmarshal([]byte(w.settings(s.typ)), &settings) // it is JSON
		text = append(text, s.rowName(i)...)
		for _, column := range columns {
			text = append(text, ',')
			if v, given := settings[column]; given {
				text = fmt.Append(text, v)
			}
		}
		text = append(text, '\n')
	}
	return text
}

// meaning returns a text that does not depend on how the settings are written.
func (s *submission) meaning() string {
	text := fmt.Sprint(s.batch, s.typ, s.priority, slices.Sorted(slices.Values(s.after)), s.any && len(s.after) > 0)
	for i, w := range s.rows {
		if s.batch {
			text += " " + s.rowName(i)
		}
		text += fmt.Sprintf(" %d CPUs %d GPUs after %q", w.cpus, w.gpus, w.before)
	}
	return text
}

// makes reports whether a row of the batch has this name.
func (s *submission) makes(name string) bool {
	for i := range s.rows {
		if s.batch && s.rowName(i) == name {
			return true
		}
	}
	return false
}

func (s *submission) rowName(i int) string {
	if s.rowNames != nil {
		return s.rowNames[i]
	}
	return fmt.Sprintf("%s-%d", s.name, i+1)
}

// judgeCreated compares a new job with its submission.
func (s *submission) judgeCreated(r *request, now *stored) error {
	w, name := s.rows[0], s.name
	if now.Private.Batch != "" {
		if now.Private.Row >= len(s.rows) || now.Batch != s.name {
			return fmt.Errorf("it is row %d of %q", now.Private.Row, now.Batch)
		}
		w, name = s.rows[now.Private.Row], s.rowName(now.Private.Row)
	}
	settings := w.settings(s.typ)
	if now.IsBatch() {
		settings = ""
	}
	switch {
	case now.Name != name || now.Type != s.typ || now.Priority != s.priority || string(now.Settings) != settings:
		return fmt.Errorf("it differs from its submission: %s", now.shown)
	case now.Organization != r.by.Organization || now.Email != r.by.Email:
		return fmt.Errorf("it belongs to another user: %s", now.shown)
	case now.IsBatch() != (s.batch && now.Private.Batch == ""):
		return fmt.Errorf("a batch and its rows are mixed up: %s", now.shown)
	case !now.IsBatch() && (now.Private.Needs.CPUs != w.cpus || now.Private.Needs.GPUs != w.gpus):
		return fmt.Errorf("it needs %+v", now.Private.Needs)
	case !now.IsBatch() && sourceOf(&now.Job) != r.sources[w.before]:
		return fmt.Errorf("it reads the result of another job")
	case !slices.Equal(now.After, s.after):
		return fmt.Errorf("it starts after %q", now.After)
	}
	for _, w := range now.Private.Waits {
		if r.awaited[w.Name] != w.Job && r.sources[w.Name] != w.Job {
			return fmt.Errorf("it waits for %s", w.Name)
		}
	}
	return nil
}

// sourceOf returns the job whose result a job reads, "" for none.
func sourceOf(j *app.Job) app.JobID {
	for _, src := range j.Private.References {
		return src.Job
	}
	return ""
}

// randomSubmission returns a random submission, which may be invalid.
func (s *simulation) randomSubmission(rng *rand.Rand, by app.Caller, batch bool) *submission {
	sub := &submission{name: string(rune('a' + rng.IntN(8))), typ: "long", batch: batch}
	if rng.IntN(3) == 0 {
		sub.typ = "short"
	}
	rows := 1
	if batch {
		sub.name = "set" + sub.name
		rows = 1 + rng.IntN(4)
	}
	for range rows {
		sub.rows = append(sub.rows, s.randomJobSettings(rng, by, sub.typ))
	}
	if batch && rng.IntN(4) == 0 {
		for _, i := range rng.Perm(8)[:rows] {
			sub.rowNames = append(sub.rowNames, string(rune('a'+i)))
		}
	}
	sub.table = batch && (int(sub.name[3])+sub.rows[0].cpus)%3 == 0
	sub.priority = []int{-1, 0, 0, 0}[rng.IntN(4)]
	if by.Role == apikey.Admin && rng.IntN(3) == 0 {
		sub.priority = 1
	}
	if rng.IntN(3) == 0 {
		s.randomAfter(rng, by, sub)
	}
	if rng.IntN(10) == 0 {
		sub.makeInvalid(rng)
	}
	return sub
}

// randomAfter lets a submission wait for others, mostly for some that have not finished.
func (s *simulation) randomAfter(rng *rand.Rand, by app.Caller, sub *submission) {
	finished := rng.IntN(4) == 0
	all := s.ledger.sorted(func(e *entry) bool {
		return e.Organization == by.Organization && e.Status.Finished() == finished && e.Name != sub.name
	})
	for _, i := range rng.Perm(len(all))[:min(len(all), 1+rng.IntN(3))] {
		sub.after = append(sub.after, all[i].Name)
	}
	sub.any = rng.IntN(4) == 0
}

func (s *simulation) randomJobSettings(rng *rand.Rand, by app.Caller, typ string) jobSettings {
	w := jobSettings{cpus: 1 + rng.IntN(3), explicit: rng.IntN(2) == 0}
	if rng.IntN(8) == 0 {
		w.cpus = 4
	}
	if typ != "long" {
		return w
	}
	if rng.IntN(3) == 0 {
		w.gpus = 1 + rng.IntN(2)
	}
	sources := s.ledger.sorted(func(e *entry) bool {
		return e.Organization == by.Organization && e.Status != app.Failed && !e.IsBatch()
	})
	if len(sources) > 0 && rng.IntN(4) == 0 {
		w.before = sources[rng.IntN(len(sources))].Name
	}
	return w
}

// makeInvalid makes a submission invalid.
func (s *submission) makeInvalid(rng *rand.Rand) {
	row := rng.IntN(len(s.rows))
	switch rng.IntN(4) {
	case 0:
		s.rows[row].cpus, s.faulty = 0, "a setting is out of bounds"
	case 1:
		s.rows[row].cpus, s.faulty = 9, "it needs more than the machine has"
	case 2:
		s.typ, s.faulty = "none", "there is no such algorithm"
	case 3:
		s.priority, s.faulty = 11, "there is no such priority"
	}
}
