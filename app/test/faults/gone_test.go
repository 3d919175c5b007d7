package faults

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"molrun/app/client"
	"molrun/app/test/must"
)

// The data directory is moved, deleted or replaced while the service uses it. From then
// on nothing may be acknowledged, since it would be lost. The service must report that it
// is not ready, and exit with code 74. Once the directory is restored, it must contain
// everything that was acknowledged.
func TestNothingIsAcknowledgedWithoutTheDataDirectory(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(data string) error{
		"moved away": func(data string) error { return os.Rename(data, data+".kept") },
		"deleted and made again": func(data string) error {
			return errors.Join(os.Rename(data, data+".kept"), os.Mkdir(data, 0o700))
		},
		"another database in its place": func(data string) error {
			kept, db := data+".kept", filepath.Join(data, "jobs.db")
			text, err := os.ReadFile(db)
			return errors.Join(err, os.Mkdir(kept, 0o700), os.Rename(db, filepath.Join(kept, "jobs.db")), os.WriteFile(db, text, 0o600))
		},
	} {
		for _, busy := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", busy", false: ", idle"}[busy], func(t *testing.T) {
				t.Parallel()
				s := newServer(t, "", "[runner]\ncpus = 2\nmemory = \"1GiB\"\n")
				s.start()
				l, v := newLedger(), &verdict{mayFail: true, mayRepeat: true}
				w := &loadClient{load: load{client: s.client(), ledger: l, name: "gone", jobs: 1000, seed: *seed}, ctx: t.Context(), rand: newRandom(*seed)}
				for range 5 {
					must.OK(t, w.submit())
				}
				s.drain(l, v)
				must.OK(t, change(s.data))
				s.expectEndWithoutData(func() {
					if !busy {
						return
					}
					if err := w.submit(); err == nil {
						t.Fatal("a submission was acknowledged without the data directory")
					} else if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status != http.StatusServiceUnavailable {
						t.Fatalf("a submission was answered %v, want 503", err)
					}
				})
				s.restoreData()
				s.start()
				s.conclude(l, v)
			})
		}
	}
}

// expectEndWithoutData calls meanwhile repeatedly until a service that has lost its data
// exits.
func (s *server) expectEndWithoutData(meanwhile func()) {
	s.t.Helper()
	var ready int
	for !s.ended() {
		meanwhile()
		if answer, err := http.Get(s.base + "/readyz"); err == nil {
			ready = answer.StatusCode
			answer.Body.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	if code := s.await(); code != 74 || ready != http.StatusServiceUnavailable {
		s.t.Errorf("the last /readyz status was %d, and the service exited with %d; want 503, then 74:\n%s", ready, code, s.log.Tail())
	}
}

// restoreData moves DATA.kept back to DATA.
func (s *server) restoreData() {
	s.t.Helper()
	kept := s.data + ".kept"
	if _, err := os.Stat(filepath.Join(kept, "jobs.db.commits")); err == nil { // the whole directory was moved
		must.OK(s.t, os.RemoveAll(s.data))
		must.OK(s.t, os.Rename(kept, s.data))
		return
	}
	must.OK(s.t, os.Rename(filepath.Join(kept, "jobs.db"), filepath.Join(s.data, "jobs.db")))
}
