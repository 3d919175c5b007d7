package blobs

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/test/must"
)

// forget removes the record of a job.
func (s *rules) forget(id app.JobID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.folders, id)
}

// A download during the deletion of its job is either complete or NOT_FOUND, whenever the
// deletion happens.
func TestDownloadDuringDeletionIsWholeOrNotFound(t *testing.T) {
	f := start(t)
	big := strings.Repeat("0123456789abcdef", 40<<10/16)
	var whole, missing int
	for round := range 40 {
		f.ids = byte(3 * round)
		first, second := f.result(map[string]string{"a": big}), f.result(map[string]string{"a": "small", "b": big})
		batch := app.JobID(f.id())
		f.rules.folders[batch] = []app.Folder{{Name: "1", Job: first}, {Name: "2", Job: second}}
		archive := f.download(batch) // its layout is cached from now on
		links := map[string]string{
			f.archiveLink(batch):    archive,
			f.resultLink(second, 1): big,
		}
		var mu sync.Mutex
		var clients, deleted sync.WaitGroup
		ended, begin := 0, make(chan struct{}) // number of downloads after which to delete
		for link, want := range links {
			for range 4 {
				clients.Go(func() {
					for range 5 {
						res := f.do("GET", link, "")
						mu.Lock()
						switch {
						case res.err == nil && res.status == http.StatusOK && res.body == want:
							whole++
						case res.err == nil && res.status == http.StatusNotFound && res.code() == fault.NotFound:
							missing++
						default:
							t.Errorf("status %d, %d bytes, err %v", res.status, len(res.body), res.err)
						}
						if ended++; ended == 1+round%30 {
							close(begin)
						}
						mu.Unlock()
					}
				})
			}
		}
		deleted.Go(func() {
			<-begin
			for _, id := range []app.JobID{batch, first, second} {
				f.rules.forget(id)
			}
			for _, id := range []app.JobID{first, second} {
				if err := f.RemoveJob(id); err != nil {
					t.Error(err)
				}
			}
		})
		clients.Wait()
		deleted.Wait()
		if t.Failed() {
			break
		}
	}
	t.Logf("%d downloads were whole, %d not found", whole, missing)
	f.server.Close() // the handler releases its lease after the client has all bytes
	must.Equal(t, "files left", f.names("."), []string{"secret"})
}

// TestRemovedJobIsKeptForItsLastReader leases a job twice, together with another job
// whose result is an input.
func TestRemovedJobIsKeptForItsLastReader(t *testing.T) {
	f := start(t)
	id, made := f.result(someResult), f.made("inputs/0/a", "text")
	contents := app.Archive{Folders: []app.Folder{{Job: id}}, Inputs: []app.InputFile{made}}
	var leases [2]interface{ End() error }
	for i := range leases {
		lease, err := f.jobs.Lease(contents.Jobs())
		must.OK(t, err)
		leases[i] = lease
	}
	a, err := f.archives.Open(contents)
	must.OK(t, err)
	must.OK(t, errors.Join(f.RemoveJob(id), f.RemoveJob(made.Job)))
	_, err = f.jobs.Lease([]app.JobID{id})
	must.Equal(t, "lease of a removed job", fault.CodeOf(err), fault.NotFound)
	for i, lease := range leases {
		var archive bytes.Buffer
		_, err := a.Content(t.Context()).SendTo(&archive, a.Size())
		if must.OK(t, err); int64(archive.Len()) != a.Size() || unzip(t, archive.String())["inputs/0/a"] != "text" {
			t.Errorf("reader %d: %d of %d bytes", i, archive.Len(), a.Size())
		}
		must.OK(t, lease.End())
	}
	left, err := os.ReadDir(filepath.Join(f.path, trashDir))
	if err != nil || len(left) > 0 {
		t.Errorf("trash after the last reader: %v, %v", left, err)
	}
	for _, job := range []app.JobID{id, made.Job} {
		if _, err := f.jobs.Open(job); err == nil {
			t.Error("a job is readable after its last lease")
		}
	}
}
