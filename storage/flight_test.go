package storage

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"

	"molrun/app"
	"molrun/app/fault"
)

// Readers that never rest meet commits at every stage. What one of them was
// shown when its View returned is on the disk: the writer has noted its commit.
func TestReadersAreShownOnlyWhatIsOnTheDisk(t *testing.T) {
	s := openNew(t)
	putJobs(t, s, testJob(0))
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				var seen int64
				view(t, s, func(t app.Tx) error {
					seen = int64(t.(*tx).bolt.ID())
					return nil
				})
				if synced := s.counts.commit.Load(); seen > synced {
					t.Errorf("a View has shown commit %d, and the disk has %d", seen, synced)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for n := range 300 {
		putJobs(t, s, testJob(1+n))
	}
	close(done)
	readers.Wait()
}

func TestViewReturnsWithTheCommitItHasSeen(t *testing.T) {
	errSync := errors.New("sync failed")
	tests := []struct {
		name  string
		ahead int // of what readers see
		waits bool
		then  func(s *Store, cancel context.CancelFunc, f *flight)
		want  error
	}{
		{"on the disk", 0, true, func(_ *Store, _ context.CancelFunc, f *flight) { f.land() }, nil},
		{"never on the disk", 0, true, func(s *Store, _ context.CancelFunc, f *flight) { s.fail(errSync); f.land() }, fault.Internal},
		{"the caller goes away", 0, true, func(_ *Store, cancel context.CancelFunc, _ *flight) { cancel() }, context.Canceled},
		{"not seen", 1, false, func(*Store, context.CancelFunc, *flight) {}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := openAt(t, filepath.Join(t.TempDir(), "jobs.db"), Options{Fatal: func(error) {}})
				putJobs(t, s, testJob(1))
				f := s.takeOff(commits(t, s) + tt.ahead) // as while its sync lasts
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				answer := make(chan error, 1)
				go func() {
					answer <- s.View(ctx, func(tx app.Tx) error {
						_, err := tx.Job(jobID(1))
						return err
					})
				}()
				synctest.Wait()
				if waits := len(answer) == 0; waits != tt.waits {
					t.Errorf("the View waits: %v, want %v", waits, tt.waits)
				}
				tt.then(s, cancel, f)
				if err := <-answer; !errors.Is(err, tt.want) {
					t.Errorf("error %v, want %v", err, tt.want)
				}
			})
		})
	}
}

// A failed View hides what it found wrong: that too may rest on what does not
// stay.
func TestRefusalOutOfALostCommitIsNotTold(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "jobs.db"), Options{Fatal: func(error) {}})
	putJobs(t, s, testJob(1))
	f := s.takeOff(commits(t, s))
	err := s.View(t.Context(), func(app.Tx) error {
		s.fail(errors.New("sync failed"))
		f.land()
		return fault.Errorf(fault.JobAlreadyExists, "job 1 exists")
	})
	if fault.CodeOf(err) != fault.Internal {
		t.Errorf("error %v, want INTERNAL", err)
	}
}
