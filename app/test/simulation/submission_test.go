package simulation

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"molrun/app"
	"molrun/app/job/apikey"
)

// simFiles are the algorithm files: one that is retried after lost attempts, one that is
// not, and one whose jobs are short, so that jobs of a batch share processes. Jobs of the
// last two get more memory when they run out: one up to a maximum amount, the other for a
// maximum number of attempts.
var simFiles = []string{
	simFile("long", "5m", 1, "1MiB") + `
[[parameters]]
name = "gpus"
type = "integer"
minimum = 0
default = 0

[[parameters]]
name = "before"
file = [".txt"]
`,
	simFile("short", "1m", 0, "256MiB") + `
[retry]
on = ["OUT_OF_MEMORY"]
most = "768MiB"
`,
	simFile("quick", "20s", 1, "1MiB") + `
[retry]
on = ["OUT_OF_MEMORY"]
memory = 3
attempts = 2

[estimate]
expected_seconds = 1.3
`,
}

func simFile(typ, limit string, retries int, memory string) string {
	gpus := map[string]string{"long": "\ngpus = \"{settings.gpus}\""}[typ]
	return fmt.Sprintf(`
format = 1
type = %q
version = "1"
title = "Pretend to compute"
max_runtime = %q
retries = %d
resumable = %v
command = ["sh", "-c", "exit 0", "{settings_file}", "{out}"]

[resources]
cpus = "{settings.cpus}"
memory = %q%s

[[parameters]]
name = "cpus"
type = "integer"
minimum = 1
default = 1
`, typ, limit, retries, typ == "long", memory, gpus)
}

// Users of two organizations that must not see each other's data.
var (
	ann   = app.Caller{Organization: "lab", Email: "ann@lab.example", Rights: apikey.Member.Rights()}
	bob   = app.Caller{Organization: "lab", Email: "bob@lab.example", Rights: apikey.Member.Rights()}
	chief = app.Caller{Organization: "lab", Email: "chief@lab.example", Rights: apikey.Admin.Rights()}
	eve   = app.Caller{Organization: "firm", Email: "eve@firm.example", Rights: apikey.Member.Rights()}
	boss  = app.Caller{Organization: "firm", Email: "boss@firm.example", Rights: apikey.Admin.Rights()}

	users         = []app.Caller{ann, ann, bob, bob, chief, eve, boss}
	admins        = []app.Caller{chief, boss}
	organizations = []string{"lab", "firm"}
)

// submission is a job, a batch or a pipeline that a user submits.
type submission struct {
	name     string
	typ      string
	rows     []jobSettings // one for a single job
	rowNames []string      // for a batch; nil means the default names
	batch    bool
	pipeline bool // a batch whose jobs have their own types and dependencies
	priority int
	after    []string // names of jobs that must finish first
	any      bool     // start after they finish, even if they fail
	notify   []string // addresses to notify when it ends
}

// jobSettings contains the settings of one job.
type jobSettings struct {
	cpus, gpus int
	explicit   bool   // written even if they equal the defaults
	before     string // name of the job whose result it reads, if any
	file       string // path of the upload that it reads, if any

	// For a job of a pipeline.
	typ   string
	after []string // nil means the batch's dependencies
	any   bool
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
	if w.file != "" {
		members = append(members, fmt.Sprintf(`"before":%q`, w.file))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// body returns the request body. Equal submissions have equal bodies.
func (s *submission) body() string {
	var all []string
	for i, w := range s.rows {
		all = append(all, w.settings(s.rowType(i)))
	}
	after := afterText(s.after, s.any)
	if s.pipeline {
		for i, w := range s.rows {
			all[i] = fmt.Sprintf(`{"jobName":%q,"type":%q,"settings":%s%s}`, s.rowName(i), w.typ, all[i], afterText(w.after, w.any))
		}
		return fmt.Sprintf(`{"batchName":%q,"jobs":[%s],"priority":%d%s}`, s.name, strings.Join(all, ","), s.priority, after)
	}
	if !s.batch {
		return fmt.Sprintf(`{"jobName":%q,"type":%q,"settings":%s,"priority":%d%s}`, s.name, s.typ, all[0], s.priority, after)
	}
	names, _ := json.Marshal(s.rowNames) // names are strings
	return fmt.Sprintf(`{"batchName":%q,"type":%q,"settings":[%s],"priority":%d%s,"jobNames":%s}`, s.name, s.typ, strings.Join(all, ","), s.priority, after, names)
}

// afterText returns the members of a request body that name dependencies.
func afterText(names []string, any bool) string {
	if names == nil {
		return ""
	}
	return fmt.Sprintf(`,"after":["%s"],"afterAny":%v`, strings.Join(names, `","`), any)
}

// meaning returns a string that is the same however the settings are written.
func (s *submission) meaning() string {
	text := fmt.Sprint(s.batch, s.pipeline, s.typ, s.priority, slices.Sorted(slices.Values(s.after)), s.any && len(s.after) > 0)
	for i, w := range s.rows {
		if s.pipeline {
			after, any := s.rowAfter(i)
			text += fmt.Sprint(" ", w.typ, slices.Sorted(slices.Values(after)), any && len(after) > 0)
		}
		if s.batch {
			text += " " + s.rowName(i)
		}
		text += fmt.Sprintf(" %d CPUs %d GPUs after %q %q", w.cpus, w.gpus, w.before, w.file)
	}
	return text
}

// row returns the index of the batch's job with this name, or -1 if there is none.
func (s *submission) row(name string) int {
	for i := range s.rows {
		if s.batch && s.rowName(i) == name {
			return i
		}
	}
	return -1
}

func (s *submission) rowType(i int) string {
	if s.pipeline {
		return s.rows[i].typ
	}
	return s.typ
}

// rowAfter returns the names of the jobs after which a job of the batch starts, and
// whether it starts even if they fail.
func (s *submission) rowAfter(i int) (names []string, any bool) {
	if w := s.rows[i]; s.pipeline && w.after != nil {
		return w.after, w.any
	}
	return s.after, s.any
}

// commonType returns the type of all jobs, or "" if they differ.
func (s *submission) commonType() string {
	for i := range s.rows {
		if s.rowType(i) != s.rowType(0) {
			return ""
		}
	}
	return s.rowType(0)
}

func (s *submission) rowName(i int) string {
	if s.rowNames != nil {
		return s.rowNames[i]
	}
	return fmt.Sprintf("%s-%d", s.name, i+1)
}

// judgeCreated compares a new job with its submission.
func (s *simulation) judgeCreated(c *change, r *request, now *stored) error {
	sub := r.submission
	switch {
	case now.Organization != r.by.Organization || now.Email != r.by.Email || now.Priority != sub.priority:
		return fmt.Errorf("it belongs to another user, or has another priority: %s", now.shown)
	case now.Private.Batch == "" && !slices.Equal(now.Private.Notify, sub.notify) || now.Private.Batch != "" && now.Private.Notify != nil:
		return fmt.Errorf("its end is notified to %q", now.Private.Notify)
	case now.IsBatch() != (sub.batch && now.Private.Batch == ""):
		return fmt.Errorf("a batch and its rows are mixed up: %s", now.shown)
	case now.IsBatch():
		return allow(now.Name == sub.name && now.Type == sub.commonType() && len(now.Settings) == 0 && slices.Equal(now.After, sub.after) && now.AfterAny == sub.any,
			"the batch differs from its submission")
	}
	i, name := 0, sub.name
	if now.Private.Batch != "" {
		if i = now.Private.Row; i >= len(sub.rows) || now.Batch != sub.name {
			return fmt.Errorf("it is row %d of %q", i, now.Batch)
		}
		name = sub.rowName(i)
	}
	w := sub.rows[i]
	after, any := sub.rowAfter(i)
	switch {
	case now.Name != name || now.Type != sub.rowType(i) || string(now.Settings) != w.settings(now.Type):
		return fmt.Errorf("it differs from its submission: %s", now.shown)
	case now.Private.Needs.CPUs != w.cpus || now.Private.Needs.GPUs != w.gpus:
		return fmt.Errorf("it needs %+v", now.Private.Needs)
	case sourceOf(&now.Job) != r.idOf(c, w.before):
		return fmt.Errorf("it reads the result of another job")
	case fileOf(&now.Job) != r.fileID(w.file):
		return fmt.Errorf("it reads another file")
	case !slices.Equal(now.After, after) || now.AfterAny != any:
		return fmt.Errorf("it starts after %q", now.After)
	}
	return s.judgeFirstWaits(c, r.waitsOf(c, w.before, after, any), now)
}

// idOf returns the ID of the job that a submission refers to by name, or "" if there is
// none.
func (r *request) idOf(c *change, name string) app.JobID {
	if r.submission.row(name) >= 0 {
		for _, j := range c.jobs {
			if j.now != nil && j.now.Name == name && j.now.Private.Batch != "" {
				return j.id
			}
		}
	}
	return r.named[name].id
}

// waitsOf returns the dependencies that a new job had when it was planned.
func (r *request) waitsOf(c *change, before string, after []string, any bool) (all []app.Dependency) {
	add := func(name string, any bool) {
		id := r.idOf(c, name)
		now := r.named[name].status
		over := r.submission.row(name) < 0 && (now == app.Completed || any && now.Finished())
		if id != "" && !over && !slices.ContainsFunc(all, func(w app.Dependency) bool { return w.Job == id }) {
			all = append(all, app.Dependency{Job: id, Name: name, Any: any})
		}
	}
	add(before, false)
	for _, name := range after {
		add(name, any)
	}
	return all
}

// judgeFirstWaits checks the dependencies of a new job. Its own transaction might already
// have propagated the status of some jobs to it.
func (s *simulation) judgeFirstWaits(c *change, planned []app.Dependency, now *stored) error {
	for _, w := range now.Private.Waits {
		if !slices.Contains(planned, w) {
			return fmt.Errorf("it waits for %s", w.Name)
		}
	}
	for _, w := range planned {
		d := s.after(c, w.Job)
		if !slices.Contains(now.Private.Waits, w) && (d == nil || d.Status != app.Completed && !(w.Any && d.Status.Finished())) {
			return fmt.Errorf("it does not wait for %s", w.Name)
		}
	}
	return nil
}

// fileOf returns the ID of the upload that a job reads, or "" if there is none.
func fileOf(j *app.Job) app.UploadID {
	for _, src := range j.Private.References {
		return src.Upload
	}
	return ""
}

func (r *request) fileID(path string) app.UploadID {
	if u := r.files[path]; u != nil {
		return u.ID
	}
	return ""
}

// sourceOf returns the ID of the job whose result a job reads, or "" if there is none.
func sourceOf(j *app.Job) app.JobID {
	for _, src := range j.Private.References {
		return src.Job
	}
	return ""
}

// randomSubmission returns a random submission, which can be invalid.
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
	if batch && rng.IntN(4) == 0 {
		for _, i := range rng.Perm(8)[:rows] {
			sub.rowNames = append(sub.rowNames, string(rune('a'+i)))
		}
	}
	sub.pipeline = batch && rng.IntN(3) == 0
	for range rows {
		typ := sub.typ
		if sub.pipeline {
			typ = []string{"long", "long", "short"}[rng.IntN(3)]
		}
		w := s.randomJobSettings(rng, by, typ)
		w.typ = typ
		sub.rows = append(sub.rows, w)
	}
	for i := range sub.rows {
		if w := &sub.rows[i]; sub.row(w.before) >= 0 {
			w.before = "" // otherwise jobs could depend on each other in a cycle
		}
	}
	if sub.pipeline {
		sub.typ = ""
		s.randomOrder(rng, by, sub)
	}
	sub.priority = []int{-1, 0, 0, 0}[rng.IntN(4)]
	if by.Administers() && rng.IntN(3) == 0 {
		sub.priority = 1
	}
	if rng.IntN(3) == 0 {
		s.randomAfter(rng, by, sub)
	}
	sub.notify = randomNotify(rng, by)
	if rng.IntN(20) == 0 {
		sub.priority = 11 // invalid, so that the submission is rejected
	}
	return sub
}

// randomOrder adds random dependencies between the jobs of a pipeline.
func (s *simulation) randomOrder(rng *rand.Rand, by app.Caller, sub *submission) {
	order := rng.Perm(len(sub.rows))
	for n, i := range order {
		w := &sub.rows[i]
		others := order[:n]
		if w.typ == "long" && w.file == "" && len(others) > 0 && rng.IntN(4) == 0 {
			w.before = sub.rowName(others[rng.IntN(len(others))])
		}
		for _, k := range others {
			if rng.IntN(2) == 0 {
				w.after = append(w.after, sub.rowName(k))
			}
		}
		if rng.IntN(6) == 0 {
			outside := s.some(func(e *entry) bool { return e.Organization == by.Organization && sub.row(e.Name) < 0 })
			if outside != nil {
				w.after = append(w.after, outside.Name)
			}
		}
		w.any = w.after != nil && rng.IntN(3) == 0
	}
}

// randomAfter makes a submission depend on random jobs, mostly unfinished ones.
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
	if rng.IntN(6) == 0 {
		w.file = "inputs/" + fileNames[rng.IntN(len(fileNames))]
		return w
	}
	sources := s.ledger.sorted(func(e *entry) bool {
		return e.Organization == by.Organization && e.Status != app.Failed && !e.IsBatch()
	})
	if len(sources) > 0 && rng.IntN(4) == 0 {
		w.before = sources[rng.IntN(len(sources))].Name
	}
	return w
}
