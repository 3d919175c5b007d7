package bench

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"molrun/app"
	"molrun/app/placement"
	"molrun/app/unit"
	"molrun/storage"
)

// What a seeded database is made of.
const (
	Organization = "lab"

	seedUsers      = 60
	seedAlgorithms = 12
	seedSettings   = 500 // bytes of each job's
	seedGroup      = 10_000
	leastSeedGroup = 1000
	seedYears      = 3

	rareHits = 20 // jobs each of the rare user, of the rare algorithm and that run
)

// The values of filters that hit few jobs, far apart, and those that hit none.
const (
	rareUser, noUser           = "rare@lab.example", "none@lab.example"
	rareAlgorithm, noAlgorithm = "rare", "none"
)

func seedUser(n int) string      { return fmt.Sprintf("user%02d@lab.example", n) }
func seedAlgorithm(n int) string { return fmt.Sprintf("algorithm-%02d", n) }

// Seed puts finished jobs into the database of a data directory that no service
// uses: of some dozens of users, a few of whom have most of the jobs, over the
// last years, one in ten failed. The jobs have no results. Each call continues
// where time has come to.
func Seed(ctx context.Context, data string, jobs int, progress func(done int)) (err error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	store, err := storage.Open(filepath.Join(data, "jobs.db"), storage.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	s := newSeeding(jobs)
	for s.made < jobs {
		group := make([]*app.Job, min(groupAfter(s.made), jobs-s.made))
		for i := range group {
			group[i] = s.next()
		}
		err := store.Update(ctx, func(tx app.Tx) error {
			for _, j := range group {
				if err := tx.PutJob(j); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("seed jobs: %w", err)
		}
		if progress != nil {
			progress(s.made)
		}
	}
	return nil
}

// groupAfter is how many jobs go into the next transaction. Many save commits,
// but a page takes all that a transaction puts into it, at a cost that grows with
// the square: so few as long as there are few pages.
func groupAfter(made int) int { return min(max(leastSeedGroup, made/4), seedGroup) }

// seeding makes jobs in the order of their time, the same in every run but for
// the times.
type seeding struct {
	random            *rand.Rand
	users, algorithms *rand.Zipf
	jobs, made        int
	first             time.Time
	every             time.Duration
}

func newSeeding(jobs int) *seeding {
	r := rand.New(rand.NewPCG(1, 2))
	span := seedYears * 365 * 24 * time.Hour
	return &seeding{
		random: r, jobs: jobs,
		users:      rand.NewZipf(r, 1.2, 4, seedUsers-1),
		algorithms: rand.NewZipf(r, 1.5, 2, seedAlgorithms-1),
		first:      time.Now().Add(-span), every: span / time.Duration(jobs+1),
	}
}

// rare reports whether this job is one of the few with an odd value; each kind
// has other places.
func (s *seeding) rare(kind int) bool {
	apart := max(1, s.jobs/rareHits)
	return s.made%apart == kind*apart/4
}

func (s *seeding) next() *app.Job {
	at := s.first.Add(time.Duration(s.made) * s.every)
	var id app.IDBytes
	binary.BigEndian.PutUint64(id[:], uint64(at.UnixMilli())<<16)
	binary.BigEndian.PutUint32(id[6:], uint32(s.made))
	binary.BigEndian.PutUint32(id[12:], s.random.Uint32())
	settings := s.settings()
	j := &app.Job{
		ID:           app.JobID(id.String()),
		Name:         fmt.Sprintf("seeded-%07d", s.made),
		Type:         seedAlgorithm(int(s.algorithms.Uint64())),
		Version:      "1",
		Status:       app.Completed,
		Settings:     settings,
		Organization: Organization,
		Email:        seedUser(int(s.users.Uint64())),
		MaxRuntime:   86400,
		CreatedAt:    unit.At(at),
		Attempts:     1,
		Executor:     "local",
		Private: app.Private{
			Sent:       fmt.Sprintf("%064x", s.random.Uint64()),
			Meaning:    fmt.Sprintf("%064x", s.random.Uint64()),
			Normalized: settings,
			Definition: fmt.Sprintf("%064x", 1),
			Needs:      placement.Resources{CPUs: 1, MemoryBytes: 1 << 30},
			QueuedAt:   unit.At(at),
		},
	}
	s.spread(j)
	s.finish(j, at)
	s.made++
	return j
}

// spread gives some jobs the odd values.
func (s *seeding) spread(j *app.Job) {
	if s.rare(0) {
		j.Email = rareUser
	}
	if s.rare(1) {
		j.Type = rareAlgorithm
	}
	if s.random.IntN(10) == 0 {
		j.Status = app.Failed
	}
}

// finish says how the job went.
func (s *seeding) finish(j *app.Job, at time.Time) {
	waited, ran := s.seconds(60), s.seconds(3600)
	j.StartedAt = unit.At(at.Add(time.Duration(waited * float64(time.Second))))
	j.CompletedAt = unit.At(j.StartedAt.Add(time.Duration(ran * float64(time.Second))))
	j.Metrics = &app.Metrics{QueueSeconds: waited, RunSeconds: ran, CPUSeconds: ran, MaxRSSBytes: s.random.Int64N(1 << 32)}
	if j.Status == app.Failed {
		code := 1
		j.Failure = &app.Failure{Code: app.FailedExit, Message: "The program ended with exit status 1.", ExitCode: &code}
		return
	}
	size := s.random.Int64N(1 << 30)
	j.ResultBytes = &size
}

// seconds gives a time of this mean, to the millisecond.
func (s *seeding) seconds(mean float64) float64 {
	return math.Round(s.random.ExpFloat64()*mean*1000) / 1000
}

// settings gives some 500 bytes of JSON.
func (s *seeding) settings() json.RawMessage {
	b := fmt.Appendf(nil, `{"steps":%d,"temperature":%d,"sequence":"`, s.random.IntN(1e6), 270+s.random.IntN(60))
	for len(b) < seedSettings-2 {
		b = append(b, "ACDEFGHIKLMNPQRSTVWY"[s.random.IntN(20)])
	}
	return append(b, `"}`...)
}
