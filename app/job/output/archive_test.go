package output_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/naming"
	"molrun/app/job/output"
	"molrun/app/test/fixture"
	"molrun/app/test/must"
)

var ann, bob = fixture.Ann, fixture.Bob

type site struct {
	*fixture.Site
	*output.Results
	t *testing.T
}

func newSite(t *testing.T) *site {
	s := fixture.New(t, app.Options{})
	return &site{s, output.NewResults(s.Store, s.Blobs, s.Jobs, s.Now), t}
}

// with requests a link to a job's archive with inputs, and returns the contents of that
// archive.
func (s *site) with(job app.JobID, name string) (app.Archive, error) {
	s.t.Helper()
	_, err := s.Link(s.t.Context(), bob, output.LinkRequest{Name: name, Form: app.ArchiveForm{Inputs: true}})
	if err != nil {
		return app.Archive{}, err
	}
	return s.Archive(s.t.Context(), job, app.ArchiveForm{Inputs: true})
}

func namesIn(a app.Archive) (all []string) {
	for _, f := range a.Inputs {
		all = append(all, f.Name)
	}
	return all
}

func TestFileOfABatchIsFoundOnlyInARowOfIts(t *testing.T) {
	s := newSite(t)
	_, xs := s.SubmitBatch(ann, "x", `{}`, `{"steps":2}`)
	_, ys := s.SubmitBatch(ann, "y", `{}`)
	for _, id := range []app.JobID{xs[0], ys[0], s.Submit(ann, "alone", `{}`)} {
		s.Complete(id, map[string]string{"out": "12345"})
	}
	for file, found := range map[string]bool{
		"x-1/out": true, "x.zip": true,
		"y-1/out": false, "alone/out": false, "x-2/out": false, "x-1": false, "x-1/": false, "x-1/other": false, "y.zip": false, "none/out": false,
	} {
		link, err := s.Link(t.Context(), ann, output.LinkRequest{Name: "x", File: file, Form: app.ArchiveForm{Partial: true}})
		switch {
		case !found && fault.CodeOf(err) != fault.NotFound:
			t.Errorf("%s: %v, want NOT_FOUND", file, err)
		case found && err != nil:
			t.Errorf("%s: %v", file, err)
		case file == "x-1/out" && link.Size != 5:
			t.Errorf("%s: %d bytes, want 5", file, link.Size)
		}
	}
}

// TestInputsComeFromWhereTheyAre deletes the sources of inputs one by one.
func TestInputsComeFromWhereTheyAre(t *testing.T) {
	s := newSite(t)
	a := s.Upload(ann, "a.txt", "text")
	source := s.Submit(ann, "source", `{}`)
	s.Complete(source, map[string]string{"b.txt": "of a job"})
	of := func(name, input string) app.JobID {
		id := s.Submit(ann, name, fmt.Sprintf(`{"input":%q}`, input))
		s.Complete(id, map[string]string{"out": "x"})
		return id
	}
	ofUpload, ofJob, ofDigest := of("ofUpload", "inputs/a.txt"), of("ofJob", "job:source/b.txt"), of("ofDigest", naming.OfDigest(a.SHA256, "other.txt"))
	for name, tt := range map[string]struct {
		job  app.JobID
		want string
	}{
		"ofUpload": {ofUpload, "inputs/" + a.SHA256 + "/a.txt"},
		"ofDigest": {ofDigest, "inputs/" + a.SHA256 + "/other.txt"},
		"ofJob":    {ofJob, "inputs/8dcb0dff7c7ee3ed6e5dd8aecdea50aa9d29b51ca3ec5e1c8b11ae0d30f2b2e0/b.txt"},
	} {
		archive, err := s.with(tt.job, name)
		if got := namesIn(archive); err != nil || len(got) != 1 || name != "ofJob" && got[0] != tt.want || !strings.HasSuffix(got[0], tt.want[len("inputs/")+64:]) {
			t.Errorf("%s: %q, %v; want %s", name, got, err, tt.want)
		}
		if without, err := s.Archive(t.Context(), tt.job, app.ArchiveForm{}); err != nil || without.Inputs != nil {
			t.Errorf("%s without inputs: %+v, %v", name, without, err)
		}
	}

	must.OK(t, s.Site.Files.Delete(t.Context(), ann, string(a.ID)))
	must.OK(t, s.Jobs.Delete(t.Context(), ann, "source"))
	for name, job := range map[string]app.JobID{"ofUpload": ofUpload, "ofDigest": ofDigest, "ofJob": ofJob} {
		_, linked := s.with(job, name)
		_, served := s.Archive(t.Context(), job, app.ArchiveForm{Inputs: true})
		for _, err := range []error{linked, served} {
			if fault.CodeOf(err) != fault.InputRemoved || !strings.Contains(err.Error(), ".txt\" with the SHA-256 digest ") {
				t.Errorf("%s, deleted: %v", name, err)
			}
		}
		if _, err := s.Link(t.Context(), ann, output.LinkRequest{Name: name}); err != nil {
			t.Errorf("%s without inputs: %v", name, err)
		}
	}

	// An upload of the same content by any member replaces a deleted source.
	s.Upload(bob, "again.txt", "text")
	s.Upload(bob, "again.txt", "of a job")
	for name, job := range map[string]app.JobID{"ofUpload": ofUpload, "ofDigest": ofDigest, "ofJob": ofJob} {
		if archive, err := s.with(job, name); err != nil || len(archive.Inputs) != 1 {
			t.Errorf("%s, uploaded again: %+v, %v", name, archive, err)
		}
	}
}

func TestUploadsOfAnotherOrganizationDoNotReplaceInputs(t *testing.T) {
	s := newSite(t)
	u := s.Upload(ann, "a.txt", "text")
	id := s.Submit(ann, "a", `{"input":"inputs/a.txt"}`)
	s.Complete(id, nil)
	must.OK(t, s.Site.Files.Delete(t.Context(), ann, string(u.ID)))
	s.Upload(fixture.Eve, "a.txt", "text")
	_, err := s.with(id, "a")
	must.Equal(t, "code", fault.CodeOf(err), fault.InputRemoved)
}

func TestRowsShareAnInput(t *testing.T) {
	s := newSite(t)
	s.Upload(ann, "a.txt", "text")
	s.Upload(ann, "b.txt", "other")
	batch, rows := s.SubmitBatch(ann, "b", `{"input":"inputs/a.txt"}`, `{"input":"inputs/a.txt","steps":2}`, `{"input":"inputs/b.txt"}`, `{}`)
	for _, id := range []app.JobID{rows[0], rows[1], rows[3]} {
		s.Complete(id, nil)
	}
	part, err := s.Archive(t.Context(), batch, app.ArchiveForm{Partial: true, Inputs: true})
	if err != nil || len(part.Folders) != 3 || len(part.Inputs) != 1 {
		t.Errorf("of the completed rows: %+v, %v", part, err)
	}
	s.Complete(rows[2], nil)
	whole, err := s.with(batch, "b")
	if err != nil || len(whole.Inputs) != 2 || !slices.IsSorted(namesIn(whole)) {
		t.Errorf("of all rows: %+v, %v", whole, err)
	}
}

func TestOnlyArchivesHaveInputs(t *testing.T) {
	s := newSite(t)
	s.Complete(s.Submit(ann, "a", `{}`), map[string]string{"out": "x"})
	_, err := s.Link(t.Context(), ann, output.LinkRequest{Name: "a", File: "out", Form: app.ArchiveForm{Inputs: true}})
	if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "[body inputs]") {
		t.Errorf("a file with inputs: %v", err)
	}
	if _, err := s.Link(t.Context(), ann, output.LinkRequest{Name: "a", File: "a.zip", Form: app.ArchiveForm{Inputs: true}}); err != nil {
		t.Errorf("the archive by its name: %v", err)
	}
}

func TestInputsInTheWayOfAResultAreRefused(t *testing.T) {
	s := newSite(t)
	u := s.Upload(ann, "a.txt", "text")
	for i, tt := range []struct {
		file    string
		refused bool
	}{
		{"inputs", true},
		{"inputs/" + u.SHA256, true},
		{"inputs/" + u.SHA256 + "/a.txt", true},
		{"inputs/" + u.SHA256 + "/a.txt/b", true},
		{"inputs/a.txt", false},
		{"Inputs", false},
		{"inputs2", false},
	} {
		name := fmt.Sprint("job-", i)
		id := s.Submit(ann, name, `{"input":"inputs/a.txt"}`)
		s.Complete(id, map[string]string{tt.file: "x"})
		_, err := s.with(id, name)
		if refused := fault.CodeOf(err) == fault.Invalid; refused != tt.refused || !refused && err != nil {
			t.Errorf("a result with the file %s: %v", tt.file, err)
		}
	}
}

func TestEveryErrorOfTheStoreIsReported(t *testing.T) {
	fixture.EachFault(t, func(arm func(*fixture.FaultyStore)) error {
		s := newSite(t)
		s.Upload(ann, "a.txt", "text")
		lost := s.Upload(ann, "b.txt", "other")
		s.Upload(ann, "c.txt", "other")
		s.Complete(s.Submit(ann, "source", `{}`), map[string]string{"b.txt": "of a job"})
		batch, rows := s.SubmitBatch(ann, "b", `{"input":"inputs/a.txt"}`, `{"input":"inputs/b.txt"}`, `{"input":"job:source/b.txt"}`)
		for _, id := range rows {
			s.Complete(id, nil)
		}
		must.OK(t, s.Site.Files.Delete(t.Context(), ann, string(lost.ID)))

		store := &fixture.FaultyStore{Store: s.Store}
		results := output.NewResults(store, s.Blobs, s.WithStore(store).Jobs, s.Now)
		arm(store)
		form := app.ArchiveForm{Inputs: true}
		if _, err := results.Link(t.Context(), ann, output.LinkRequest{Name: "b", Form: form}); err != nil {
			return err
		}
		_, err := results.Archive(t.Context(), batch, form)
		return err
	})
}
