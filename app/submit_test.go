package app_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/test/must"
)

func TestSubmittingTheSameWorkAgainReturnsTheJob(t *testing.T) {
	s := newSite(t)
	first := s.submit(ann, "a", `{"steps":10}`)
	for _, settings := range []string{`{"steps":10}`, `{ "steps" : 1e1 }`, `{}`, `{"steps":10.0}`} {
		rec, created, err := s.Jobs.Submit(t.Context(), bob, submission(t, "a", settings))
		if err != nil || created || decode(t, rec).ID != first.ID {
			t.Errorf("settings %s: created %v, error %v; want job %s", settings, created, err, first.ID)
		}
	}
	wantCode(t, "other settings", must.Error3(s.Jobs.Submit(t.Context(), ann, submission(t, "a", `{"steps":11}`))), fault.JobAlreadyExists)
}

func TestRepeatedSubmissionShowsTheProgressOfARunningJob(t *testing.T) {
	s := newSite(t)
	j := s.submit(ann, "a", `{"steps":10}`)
	s.Start(j.ID)
	s.Runs.SetProgress(&app.Job{ID: j.ID}, app.Progress{Fraction: 0.5})
	for _, settings := range []string{`{"steps":10}`, `{}`} { // the same body, and one that is equal once defaults are filled in
		rec, created, err := s.Jobs.Submit(t.Context(), ann, submission(t, "a", settings))
		if err != nil || created || !strings.Contains(string(rec), `"progress":{"fraction":0.5}`) {
			t.Errorf("settings %s: created %v, error %v, record %s; want half the progress", settings, created, err, rec)
		}
	}
}

func TestConcurrentEqualSubmissionsCreateOneJob(t *testing.T) {
	s := newSite(t)
	var wg sync.WaitGroup
	created := make([]bool, 200)
	for i := range created {
		wg.Go(func() {
			var err error
			if _, created[i], err = s.Jobs.Submit(t.Context(), ann, submission(t, "same", `{"steps":5}`)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	must.Equal(t, "jobs of 200 equal submissions", len(slices.DeleteFunc(created, func(c bool) bool { return !c })), 1)
	created = make([]bool, 20)
	for i := range created {
		wg.Go(func() {
			var err error
			if _, created[i], err = s.Jobs.SubmitBatch(t.Context(), ann, batchSubmission(t, "batch", `{}`, `{"steps":5}`)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	must.Equal(t, "batches of 20 equal ones", len(slices.DeleteFunc(created, func(c bool) bool { return !c })), 1)
}

func TestRepeatedSubmissionIsRecognisedAfterItsFileAndAlgorithmAreGone(t *testing.T) {
	s := newSite(t)
	u := s.Upload(ann, "in.txt", "hello")
	first := s.submit(ann, "a", `{"input":"inputs/in.txt"}`)
	if len(first.Inputs) != 1 || first.Inputs[0].FileID != string(u.ID) || first.Inputs[0].SHA256 != u.SHA256 {
		t.Errorf("inputs %+v, want the upload %s", first.Inputs, u.ID)
	}
	wantCode(t, "delete a file that a queued job reads", s.Files.Delete(t.Context(), ann, string(u.ID)), fault.FileInUse)
	again := func(when string, service *app.Service, settings string) {
		t.Helper()
		rec, created, err := service.Jobs.Submit(t.Context(), ann, submission(t, "a", settings))
		if err != nil || created || decode(t, rec).ID != first.ID {
			t.Errorf("%s: created %v, error %v; want job %s", when, created, err, first.ID)
		}
	}
	s.Upload(ann, "in.txt", "other")
	again("another file of that name", s.Service, `{"input":"inputs/in.txt","steps":10}`) // references are compared as written
	s.Run(first.ID, success())
	must.OK(t, s.Files.Delete(t.Context(), ann, string(u.ID)))
	renamed := strings.Replace(echoFile, `name = "input"`, `name = "text"`, 1)
	again("a changed algorithm", s.WithOptions(s.Store, app.Options{}, renamed), `{"input":"inputs/in.txt"}`)
	again("no algorithm", s.WithOptions(s.Store, app.Options{}, greedyFile), `{ "input" : "inputs/in.txt" }`)
}

func TestUnresolvableFileReferencesAreFaults(t *testing.T) {
	s := newSite(t)
	theirs := s.Upload(bob, "bobs.txt", "text").ID
	s.Upload(ann, "wrong.pdb", "ATOM")
	pending := s.createUpload() // a.txt
	s.submit(ann, "queued", `{}`)
	s.submitBatch(ann, "batch", `{}`)
	for _, ref := range []string{
		"", "nothing", "inputs/nothing.txt", "bobs.txt", "inputs/bobs.txt", "01AAAAAAAAAAAAAAAAAAAAAAAA", string(pending), "inputs/a.txt",
		"inputs/wrong.pdb", "job:none/a.txt", "job:batch/a.txt", "job:", "job:queued", "/etc/passwd", "../inputs/in.txt", "job:queued/../../x",
	} {
		settings := fmt.Sprintf(`{"input":%q}`, ref)
		_, _, err := s.Jobs.Submit(t.Context(), ann, submission(t, "j", settings))
		must.Equal(t, "faults of "+ref, slices.Compact(faultLocations(t, err)), []string{"[body settings input]"})
		_, _, err = s.Jobs.SubmitBatch(t.Context(), ann, batchSubmission(t, "b", `{}`, settings))
		must.Equal(t, "faults of a row with "+ref, slices.Compact(faultLocations(t, err)), []string{"[body settings 1 input]"})
	}
	s.submit(ann, "by id", fmt.Sprintf(`{"input":%q}`, theirs)) // an id can refer to any file of the organization
}

func TestNeedsBeyondTheServerAreFaultsAtTheirSettings(t *testing.T) {
	s := newSite(t, greedyFile)
	for settings, want := range map[string][]string{
		`{"cores":4,"memory_gb":8}`: nil,
		`{"cores":5}`:               {"[body settings cores] the job would need more than this server has: 5 CPUs of 4; request less"},
		`{"cores":5,"memory_gb":9,"cards":1}`: {
			"[body settings cores] the job would need more than this server has: 5 CPUs of 4; request less",
			"[body settings memory_gb] the job would need more than this server has: 9.0 GiB of memory of 8.0 GiB; request less",
			"[body settings cards] the job would need more than this server has: 1 GPUs of 0; request less",
		},
	} {
		must.Equal(t, settings, validate(t, s.Service, submissionOf(t, "greedy", "a", settings)), want)
	}
}

// repeatingFile is an algorithm whose validator reports its input.
const repeatingFile = `
format = 1
type = "repeating"
version = "1"
title = "Repeat settings"
command = ["true"]

[[parameters]]
name = "steps"
type = "number"
default = 10

[[parameters]]
name = "a"
type = "string"
default = ""

[validate]
command = ["/bin/sh", "-c", '''read -r line; printf '[{{"loc":["line"],"msg":"%s"}}]' "$(echo "$line" | tr '"' "'")"''']
always = true
`

func TestValidatorsReadSettingsAsProgramsDo(t *testing.T) {
	s := newSite(t, repeatingFile)
	for settings, want := range map[string][]string{
		`{}`:            {`[body settings line] {'a':'','steps':10}`},
		`{"steps":2e3}`: {`[body settings line] {'a':'','steps':2000}`},
		`{"steps":"x"}`: {`[body settings steps] must be a number, got text`, `[body settings line] {'steps':'x'}`}, // as submitted
	} {
		must.Equal(t, settings, validate(t, s.Service, submissionOf(t, "repeating", "a", settings)), want)
	}
}

// validate returns the errors found by Validate, as location and message.
func validate(t *testing.T, service *app.Service, sub app.Submission) (faults []string) {
	t.Helper()
	found, err := service.Jobs.Validate(t.Context(), ann, sub)
	must.OK(t, err)
	for _, f := range found.Detail {
		faults = append(faults, fmt.Sprint(f.Loc, " ", f.Msg))
	}
	return faults
}

// interposedStore calls a function once before the next update.
type interposedStore struct {
	app.Store
	before func()
}

func (s *interposedStore) Update(ctx context.Context, fn func(app.Tx) error) error {
	if before := s.before; before != nil {
		s.before = nil
		before()
	}
	return s.Store.Update(ctx, fn)
}

func TestFileDeletedDuringSubmissionIsAFaultAtItsSetting(t *testing.T) {
	s := newSite(t)
	store := &interposedStore{Store: s.Store}
	service := s.WithOptions(store, app.Options{}, echoFile)
	for want, submit := range map[string]func() error{
		"[body settings 1 input]": func() error {
			_, _, err := service.Jobs.SubmitBatch(t.Context(), ann, batchSubmission(t, "b", `{}`, `{"input":"inputs/in.txt"}`))
			return err
		},
		"[body settings input]": func() error {
			_, _, err := service.Jobs.Submit(t.Context(), ann, submission(t, "j", `{"input":"inputs/in.txt"}`))
			return err
		},
	} {
		u := s.Upload(ann, "in.txt", "text")
		store.before = func() { must.OK(t, s.Files.Delete(t.Context(), ann, string(u.ID))) }
		must.Equal(t, "faults", faultLocations(t, submit()), []string{want})
	}
}

// TestATakenNameCountsBeforeWhatWasDeletedMeanwhile deletes an input or a dependency of a
// submission just before it is stored. The names of a batch and its rows are still
// checked first.
func TestATakenNameCountsBeforeWhatWasDeletedMeanwhile(t *testing.T) {
	s := newSite(t)
	store := &interposedStore{Store: s.Store}
	service := s.WithOptions(store, app.Options{}, echoFile)
	s.submit(ann, "taken", `{}`)
	after := app.After{Names: []string{"gone"}}
	for name, submit := range map[string]func() error{
		"of a job": func() error {
			sub := submission(t, "taken", `{"steps":2}`)
			sub.After = after
			_, _, err := service.Jobs.Submit(t.Context(), ann, sub)
			return err
		},
		"of a row that waits": func() error {
			sub := batchSubmission(t, "b", `{}`)
			sub.RowNames, sub.After = []string{"taken"}, after
			_, _, err := service.Jobs.SubmitBatch(t.Context(), ann, sub)
			return err
		},
		"of a row that reads": func() error {
			sub := batchSubmission(t, "b", `{"input":"job:gone/a.txt"}`)
			sub.RowNames = []string{"taken"}
			_, _, err := service.Jobs.SubmitBatch(t.Context(), ann, sub)
			return err
		},
		"of a row of a pipeline": func() error {
			_, _, err := service.Jobs.SubmitPipeline(t.Context(), ann, pipelineOf(t, "b", pipelineStep("taken", "gone")))
			return err
		},
	} {
		gone := s.submit(ann, "gone", `{}`)
		store.before = func() {
			s.Run(gone.ID, failure())
			must.OK(t, s.Jobs.Delete(t.Context(), ann, "gone"))
		}
		wantCode(t, "a taken name "+name, submit(), fault.JobAlreadyExists)
	}
}

func TestIDsIncreaseWhenTheClockGoesBack(t *testing.T) {
	s := newSite(t)
	first := s.submit(ann, "a", `{}`)
	s.Advance(-24 * time.Hour)
	second := s.submit(ann, "b", `{}`)
	s.Service = s.WithOptions(s.Store, app.Options{}, echoFile) // as after a restart
	third := s.submit(ann, "c", `{}`)
	if !(first.ID < second.ID && second.ID < third.ID) {
		t.Errorf("IDs %s, %s, %s do not increase", first.ID, second.ID, third.ID)
	}
}
