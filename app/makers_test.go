package app_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/job/quota"
	"molrun/app/test/fixture"
	"molrun/app/test/must"
)

const (
	searchFile = `
format = 1
type = "search"
version = "1"
command = ["cat", "{files.sequences}"]

[[parameters]]
name = "sequences"
file = [".fasta"]
content = "protein-sequences"
max_records = 2
required = true

[[parameters]]
name = "deep"
type = "boolean"
default = false

[[parameters]]
name = "cores"
type = "integer"
default = 1

[resources]
cpus = "{settings.cores}"

[[outputs]]
name = "rows"
file = "rows/*.a3m"
`
	foldFile = `
format = 1
type = "fold"
version = "1"
command = ["cat", { if = "files.chains", args = ["{files.chains}"] }, { each = "files.rows", args = ["{item}"] }]

[[parameters]]
name = "chains"
file = [".fasta", ".fa"]
content = "protein-sequences"

[[parameters]]
name = "rows"
file = [".a3m"]
type = "array"

[parameters.job]
if = "settings.msa == 'search'"
type = "search"
output = "rows"
settings = { sequences = "{files.chains}", deep = true }

[[parameters]]
name = "msa"
type = "string"
enum = ["none", "search"]
default = "none"

[[rules]]
that = "settings.msa == 'none' or facts.rows.files == 2"
message = "are not two"
at = "rows"
`
)

// foldSettings uploads chains and returns fold settings that request an MSA search for
// them.
func (s *site) foldSettings(by app.Caller, filename, text string) string {
	s.t.Helper()
	return fmt.Sprintf(`{"chains":%q,"msa":"search"}`, s.Upload(by, filename, text).ID)
}

func (s *site) fold(by app.Caller, name, settings string) shownJob {
	s.t.Helper()
	rec, _, err := s.Jobs.Submit(s.t.Context(), by, submissionOf(s.t, "fold", name, settings))
	must.OK(s.t, err)
	return decode(s.t, rec)
}

// ofType returns the names of an organization's jobs of a type, excluding rows of
// batches.
func (s *site) ofType(organization, typ string) (names []string) {
	s.t.Helper()
	must.OK(s.t, s.Store.View(s.t.Context(), func(tx app.Tx) error {
		ids, _, err := tx.JobIDs(app.JobFilter{Organization: organization, Type: typ, Ascending: true}, "", 1000)
		for _, id := range ids {
			j, err := tx.Job(id)
			if err != nil {
				return err
			}
			names = append(names, j.Name)
		}
		return err
	}))
	return names
}

// search returns the organization's only job of type search.
func (s *site) search(organization string) shownJob {
	s.t.Helper()
	names := s.ofType(organization, "search")
	if len(names) != 1 {
		s.t.Fatalf("searches: %v, want one", names)
	}
	return s.job(app.Caller{Organization: organization}, names[0])
}

func TestASettingHasAnotherJobMakeAFile(t *testing.T) {
	s := newSite(t, searchFile, foldFile)
	f := s.fold(ann, "f", s.foldSettings(ann, "a.fasta", ">a\nMKVLAAG\nIVG\n>b\nGGSW\n"))
	search := s.search("lab")
	must.Equal(t, "what f reads", f.Inputs[1], app.Input{Setting: "rows", Job: search.Name, Output: "rows", Path: "rows/*.a3m", Filename: "*.a3m"})
	must.Equal(t, "settings of the search", string(search.Settings), fmt.Sprintf(`{"deep":true,"sequences":%q}`, f.Inputs[0].FileID))
	must.Equal(t, "who submitted it", search.Email, ann.Email)
	s.wantStandings("at first", map[string]string{"f": fmt.Sprintf("QUEUED waiting for job %q", search.Name)})
	must.Equal(t, "the queue", s.queued(), []string{search.Name})

	other := strings.Replace(s.foldSettings(bob, "b.fa", ">x y\nmkvlaagivg*\n>\nGGSW\n"), "}", `,"rows":null}`, 1)
	must.Equal(t, "an equal one of another user", s.fold(bob, "g", other).Inputs[1].Job, search.Name)
	s.fold(ann, "alone", strings.Replace(s.foldSettings(ann, "a.fasta", ">a\nMKV\n"), "search", "none", 1))
	must.Equal(t, "searches", len(s.ofType("lab", "search")), 1)
	s.fold(eve, "f", s.foldSettings(eve, "a.fasta", ">a\nMKVLAAGIVG\n>b\nGGSW\n"))
	must.Equal(t, "searches of another organization", s.search("other").Email, eve.Email)

	s.Complete(search.ID, map[string]string{"rows/1.a3m": ">a\nMKV\n", "rows/2.a3m": ">b\nGGS\n"})
	if queue := s.queued(); !slices.Contains(queue, "f") || !slices.Contains(queue, "g") {
		t.Errorf("the queue is %v", queue)
	}
	h := s.fold(ann, "h", s.foldSettings(ann, "c.fasta", ">a\nMKVLAAGIVG\n>b\nGGSW\n"))
	if len(h.Inputs) != 3 || h.Inputs[2].Job != search.Name || h.Inputs[2].SHA256 == "" || h.StatusReason != "" {
		t.Errorf("with a search that has COMPLETED: %+v, %q", h.Inputs, h.StatusReason)
	}
	s.fold(ann, "turned", s.foldSettings(ann, "d.fasta", ">b\nGGSW\n>a\nMKVLAAGIVG\n"))
	must.Equal(t, "searches after one in another order", len(s.ofType("lab", "search")), 2)
}

func TestAFailedMakerFailsItsReaders(t *testing.T) {
	s := newSite(t, searchFile, foldFile)
	settings := s.foldSettings(ann, "a.fasta", ">a\nMKVLAAGIVG\n")
	s.fold(ann, "f", settings)
	first := s.search("lab")
	s.Fail(first.ID, nil)
	s.wantStandings("the search failed", map[string]string{"f": "FAILED DEPENDENCY_FAILED"})
	second := s.fold(bob, "g", s.foldSettings(bob, "a.fasta", ">a\nMKVLAAGIVG\n")).Inputs[1].Job
	must.Equal(t, "the next search", second, first.Name+"-2")
	s.Start(s.job(bob, second).ID)
	s.cancel(bob, second)
	must.Equal(t, "the search after one that is being stopped", s.fold(ann, "h", settings).Inputs[1].Job, first.Name+"-3")
	s.retry(ann, first.Name)
	must.Equal(t, "the search that was tried again", s.fold(ann, "i", settings).Inputs[1].Job, first.Name)
}

func TestRowsShareWhatTheyHaveMade(t *testing.T) {
	s := newSite(t, searchFile, foldFile)
	one, same, two := s.foldSettings(ann, "1.fasta", ">a\nMKVLAAGIVG\n"), s.foldSettings(ann, "2.fasta", ">b\nMKVLAAGIVG\n"), s.foldSettings(ann, "3.fasta", ">a\nGGSW\n")
	must.OK(t, must.Error3(s.Jobs.SubmitBatch(t.Context(), ann, batchSubmissionOf(t, "fold", "b", one, same, two))))
	must.Equal(t, "searches", len(s.ofType("lab", "search")), 2)
	of := func(row string) string { return s.job(ann, row).Inputs[1].Job }
	if of("b-1") != of("b-2") || of("b-1") == of("b-3") {
		t.Errorf("rows read %s, %s and %s", of("b-1"), of("b-2"), of("b-3"))
	}
	s.submitPipeline("p",
		app.PipelineJob{Type: "fold", Settings: parseJSON(t, two)},
		app.PipelineJob{Type: "fold", Settings: parseJSON(t, s.foldSettings(ann, "4.fasta", ">a\nKLMN\n")), MaxRuntime: 60},
		app.PipelineJob{Type: "fold", Settings: parseJSON(t, s.foldSettings(ann, "5.fasta", ">b\nKLMN\n"))},
	)
	must.Equal(t, "searches with those of a pipeline", len(s.ofType("lab", "search")), 3)
	if of("p-1") != of("b-3") || of("p-2") != of("p-3") {
		t.Errorf("rows of the pipeline read %s, %s and %s", of("p-1"), of("p-2"), of("p-3"))
	}
}

func TestMakersAreRefusedWithTheirReaders(t *testing.T) {
	s := newSite(t, searchFile, foldFile)
	s.submit(ann, "made", `{}`)
	chains := func(text string) string { return string(s.Upload(ann, "x.fasta", text).ID) }
	rows := s.Upload(ann, "x.a3m", ">a\nMKV\n").ID
	none := strings.Replace(searchFile, `"cat"`, `"no-such-program"`, 1)
	for name, tt := range map[string]struct {
		definitions    []string
		settings, want string
	}{
		"not ready":         {[]string{none, foldFile}, `{"chains":"` + chains(">a\nMKV\n") + `","msa":"search"}`, "body.settings.msa: needs a job of type search, but search is not ready on this server: "},
		"no such algorithm": {[]string{foldFile}, `{"chains":"` + chains(">a\nMKV\n") + `","msa":"search"}`, "body.settings.msa: needs a job of type search, which is not available"},
		"both":              {nil, fmt.Sprintf(`{"chains":%q,"msa":"search","rows":[%q]}`, chains(">a\nMKV\n"), rows), "body.settings.rows: can't be combined with msa, for which a job of type search makes the file"},
		"no chains":         {nil, `{"msa":"search"}`, "body.settings.chains: is required by the job that makes another input"},
		"too many for it":   {nil, `{"chains":"` + chains(">a\nMKV\n>b\nMKV\n>c\nMKV\n") + `","msa":"search"}`, "body.settings.chains: has 3 records"},
		"pending":           {nil, `{"chains":"job:made/x.fasta","msa":"search"}`, `body.settings.chains: is created by job "made", which has not finished`},
		"a large file":      {nil, `{"chains":"` + chains(strings.Repeat(">a\n", 1_500_000)) + `","msa":"search"}`, "body.settings.chains: has more than 4.0 MiB"},
		"many records":      {nil, `{"chains":"` + chains(strings.Repeat(">a\nM\n", 10_001)) + `","msa":"search"}`, "body.settings.chains: has more than 10000 sequences"},
		"no protein":        {nil, `{"chains":"` + chains("1234\n") + `","msa":"search"}`, "body.settings.chains"},
		"too large":         {[]string{strings.Replace(searchFile, "default = 1\n", "default = 9\n", 1), foldFile}, `{"chains":"` + chains(">a\nMKV\n") + `","msa":"search"}`, "body.settings.msa: needs a job of type search, but "},
		"for another one":   {[]string{searchFile, strings.NewReplacer(`"fold"`, `"other"`).Replace(foldFile), strings.NewReplacer(`"search"`+"\n", `"other"`+"\n", "deep = true", `msa = "search"`, "sequences =", "chains =").Replace(foldFile)}, `{"chains":"` + chains(">a\nMKV\n") + `","msa":"search"}`, "body.settings.msa: needs a job of type other, but its setting msa needs a job of type search, which"},
	} {
		jobs := s.Jobs
		if tt.definitions != nil {
			jobs = s.WithOptions(s.Store, app.Options{}, tt.definitions...).Jobs
		}
		err := must.Error3(jobs.Submit(t.Context(), ann, submissionOf(t, "fold", "f", tt.settings)))
		var refused *fault.Error
		if !errors.As(err, &refused) || len(refused.Fields) != 1 || !strings.HasPrefix(refused.Fields[0].String(), tt.want) {
			t.Errorf("%s: %v, want one fault: %s", name, err, tt.want)
		}
	}
	must.Equal(t, "searches", len(s.ofType("lab", "search")), 0)
}

func TestMakersCountInQuotas(t *testing.T) {
	s := newSite(t, searchFile, foldFile)
	settings := s.foldSettings(ann, "a.fasta", ">a\nMKVLAAGIVG\n")
	few := func(n int) *app.Jobs {
		return s.WithOptions(s.Store, app.Options{Quota: func(string, string) quota.Quota { return quota.Quota{Queued: n} }}, searchFile, foldFile).Jobs
	}
	wantQuotaExceeded(t, "one job", must.Error3(few(1).Submit(t.Context(), ann, submissionOf(t, "fold", "f", settings))), "2 requested")
	must.Equal(t, "searches", len(s.ofType("lab", "search")), 0)
	must.OK(t, must.Error3(few(2).Submit(t.Context(), ann, submissionOf(t, "fold", "f", settings))))
	must.OK(t, must.Error3(few(3).Submit(t.Context(), ann, submissionOf(t, "fold", "g", settings))))
}

func TestSitesAddSettingsAndDataToMakers(t *testing.T) {
	s := newSite(t, searchFile, foldFile)
	data := "release 1"
	jobs := s.WithOptions(s.Store, app.Options{Makers: map[string]app.MakerSite{"search": {Settings: map[string]any{"cores": 3}, Data: func() string { return data }}}}, searchFile, foldFile).Jobs
	settings := s.foldSettings(ann, "a.fasta", ">a\nMKVLAAGIVG\n")
	fold := func(name string) {
		must.OK(t, must.Error3(jobs.Submit(t.Context(), ann, submissionOf(t, "fold", name, settings))))
	}
	fold("f")
	search := s.search("lab")
	must.Equal(t, "cores", s.storedJob(search.ID).Private.Needs.CPUs, 3)
	must.Equal(t, "its name", search.Name, app.WorkName("search", data, []byte(`{"deep":true}`), app.SequencesDigest([]string{"MKVLAAGIVG"})))
	fold("g")
	data = "release 2"
	fold("h")
	must.Equal(t, "searches", len(s.ofType("lab", "search")), 2)
}

// TestAReaderIsNeverThereWithoutItsMaker makes each store call of a submission fail in
// turn and checks that either both jobs are stored or neither.
func TestAReaderIsNeverThereWithoutItsMaker(t *testing.T) {
	s := newSite(t, searchFile, foldFile)
	settings := s.foldSettings(ann, "a.fasta", ">a\nMKVLAAGIVG\n")
	stored := func() int { return len(s.ofType("lab", "search")) + len(s.ofType("lab", "fold")) }
	fixture.EachFault(t, func(arm func(*fixture.FaultyStore)) error {
		must.Equal(t, "jobs before", stored(), 0)
		store := &fixture.FaultyStore{Store: s.Store}
		jobs := s.WithStore(store).Jobs
		arm(store)
		return must.Error3(jobs.Submit(t.Context(), ann, submissionOf(t, "fold", "f", settings)))
	})
	must.Equal(t, "jobs in the end", stored(), 2)
}

// overtaken is a store that calls a function just before the first update.
type overtaken struct {
	app.Store
	by func()
}

// Update implements app.Store.
func (s *overtaken) Update(ctx context.Context, fn func(app.Tx) error) error {
	by := s.by
	s.by = func() {}
	by()
	return s.Store.Update(ctx, fn)
}

func TestMakersThatChangeMeanwhile(t *testing.T) {
	const text = ">a\nMKVLAAGIVG\n"
	for name, tt := range map[string]struct {
		before, meanwhile func(s *site)
		suffix            string // of the name of the search whose result is read
	}{
		"an equal one is submitted": {func(*site) {}, func(s *site) { s.fold(bob, "g", s.foldSettings(bob, "b.fasta", text)) }, ""},
		"it fails":                  {func(s *site) { s.fold(bob, "g", s.foldSettings(bob, "b.fasta", text)) }, func(s *site) { s.Fail(s.search("lab").ID, nil) }, "-2"},
		"it is deleted": {func(s *site) {
			s.fold(bob, "g", s.foldSettings(bob, "b.fasta", text))
			s.Complete(s.search("lab").ID, map[string]string{"rows/1.a3m": text, "rows/2.a3m": text})
			s.cancel(bob, "g")
		}, func(s *site) {
			must.OK(s.t, s.Jobs.Delete(s.t.Context(), chief, s.search("lab").Name))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, searchFile, foldFile)
			tt.before(s)
			store := &overtaken{s.Store, func() { tt.meanwhile(s) }}
			settings := s.foldSettings(ann, "a.fasta", text)
			must.OK(t, must.Error3(s.WithStore(store).Jobs.Submit(t.Context(), ann, submissionOf(t, "fold", "f", settings))))
			all := s.ofType("lab", "search")
			must.Equal(t, "the search that f reads", s.job(ann, "f").Inputs[1].Job, app.WorkName("search", "", []byte(`{"deep":true}`), app.SequencesDigest([]string{"MKVLAAGIVG"}))+tt.suffix)
			must.Equal(t, "the last search", s.job(ann, "f").Inputs[1].Job, all[len(all)-1])
			must.Equal(t, "what f waits for", s.standing("f"), fmt.Sprintf("QUEUED waiting for job %q", all[len(all)-1]))
		})
	}
}
