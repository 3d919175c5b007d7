package main

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
	"molrun/app/algorithm/placement"
	"molrun/app/base/sortid"
	"molrun/app/base/unit"
	"molrun/storage"
)

// Properties of the seeded jobs.
const (
	organization = "lab"

	seedUsers      = 60
	seedAlgorithms = 12
	seedSettings   = 500 // bytes of settings per job
	seedYears      = 3

	minSeedGroup, maxSeedGroup = 1000, 10_000 // jobs per transaction

	rareHits = 20 // jobs of the rare user, and jobs of the rare algorithm
)

// Values of filters that match few jobs, far apart, and values that match none.
const (
	rareUser, absentUser           = "rare@lab.example", "none@lab.example"
	rareAlgorithm, absentAlgorithm = "rare", "none"
)

func seedUser(n int) string      { return fmt.Sprintf("user%02d@lab.example", n) }
func seedAlgorithm(n int) string { return fmt.Sprintf("algorithm-%02d", n) }

// seed fills the database of a data directory that no service is using with finished jobs
// spread over the last years. A few users have most of the jobs, and one job in ten has
// failed. The jobs have no results.
func seed(ctx context.Context, data string, jobs int, progress func(done int)) (err error) {
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
		var uploads []*app.Upload
		for i := range group {
			group[i] = s.next()
			if u := s.upload(group[i]); u != nil {
				uploads = append(uploads, u)
			}
		}
		err := store.Update(ctx, func(tx app.Tx) error {
			for _, j := range group {
				if err := tx.PutJob(j); err != nil {
					return err
				}
			}
			for _, u := range uploads {
				if err := tx.PutUpload(u); err != nil {
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

// groupAfter returns how many jobs the next transaction adds. Large groups save commits.
// But bbolt splits a page only at the commit, and inserting into an oversized page costs
// the square of its size, so groups stay small while the database has few pages.
func groupAfter(made int) int { return min(max(minSeedGroup, made/4), maxSeedGroup) }

// seeding creates jobs in chronological order. Only their times differ between runs.
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

// rare reports whether the next job is one of the few with a rare value. Each kind of
// value is rare at different positions.
func (s *seeding) rare(kind int) bool {
	apart := max(1, s.jobs/rareHits)
	return s.made%apart == kind*apart/4
}

func (s *seeding) next() *app.Job {
	at := s.first.Add(time.Duration(s.made) * s.every)
	var id sortid.ID
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
		Organization: organization,
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
	s.vary(j)
	s.finish(j, at)
	s.made++
	return j
}

// vary gives some jobs a rare user, a rare algorithm, a failure or a tag.
func (s *seeding) vary(j *app.Job) {
	if s.rare(0) {
		j.Email = rareUser
	}
	if s.rare(1) {
		j.Type = rareAlgorithm
	}
	if s.random.IntN(10) == 0 {
		j.Status = app.Failed
	}
	if s.made%10 == 0 {
		j.Tags = map[string]string{"project": "folding"}
	}
}

// finish records the outcome of the job.
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

// seconds returns a random duration with the given mean, rounded to milliseconds.
func (s *seeding) seconds(mean float64) float64 {
	return math.Round(s.random.ExpFloat64()*mean*1000) / 1000
}

// settings returns about 500 bytes of JSON.
func (s *seeding) settings() json.RawMessage {
	b := fmt.Appendf(nil, `{"steps":%d,"temperature":%d,"sequence":"`, s.random.IntN(1e6), 270+s.random.IntN(60))
	for len(b) < seedSettings-2 {
		b = append(b, "ACDEFGHIKLMNPQRSTVWY"[s.random.IntN(20)])
	}
	return append(b, `"}`...)
}
