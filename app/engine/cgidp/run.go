package cgidp

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"molrun/app/base/unit"
	"molrun/app/engine/run"
	"molrun/app/engine/store"
)

// saveEvery is the maximum time between saves of intermediate results.
const saveEvery = 30 * time.Second

// simulation is one call of Run.
type simulation struct {
	run.Run[*replica]
	settings *Settings
	dir      string
	chains   []*chain
}

// Run simulates all sequences. It writes results below dir and progress to log. When ctx
// is canceled, it soon returns the error of ctx and leaves the results so far, marked as
// incomplete. If dir holds checkpoints of the same settings, Run resumes from them, and
// the results are those of an uninterrupted run.
func Run(ctx context.Context, s *Settings, dir string, log io.Writer) error {
	return newSimulation(s, dir, log).runAll(ctx)
}

func newSimulation(s *Settings, dir string, log io.Writer) *simulation {
	m := &simulation{settings: s, dir: dir, Run: run.Run[*replica]{Workers: s.Cores, Log: log, SaveEvery: saveEvery}}
	for i := range s.Sequences {
		c := newChain(s, i, dir)
		m.chains, m.Parts = append(m.chains, c), append(m.Parts, &c.Part)
	}
	return m
}

func (m *simulation) runAll(ctx context.Context) error {
	if len(m.chains) == 0 {
		return fmt.Errorf("the settings name the FASTA file %q, but its content was not given", m.settings.fasta)
	}
	if err := os.MkdirAll(m.dir, 0o755); err != nil {
		return err
	}
	m.announce()
	if err := m.Compute(ctx); err != nil {
		return err
	}
	var all []*summary
	for _, c := range m.chains {
		all = append(all, c.final)
	}
	if err := writeTables(m.dir, all); err != nil {
		return err
	}
	m.logResults(all)
	return m.End()
}

func (m *simulation) announce() {
	s := m.settings
	fmt.Fprintf(m.Log, "%s %s, %s: %s, %s each, %s; about %s on an idle machine\n", engineName, engineVersion, modelName,
		unit.Count(len(s.Sequences), "sequence"), unit.Count(s.Replicas, "replica"), unit.Count(s.Cores, "core"),
		store.ShortDuration(s.Estimate().Seconds()))
	for _, w := range s.Warnings() {
		fmt.Fprintf(m.Log, "warning: %s\n", w)
	}
}

// logResults logs the results of each sequence on one line, followed by the warnings.
func (m *simulation) logResults(all []*summary) {
	var about []warned
	for _, s := range all {
		rg, ree, exponent := s.Results.Rg, s.Results.Ree, ""
		if nu := float64(s.Results.Nu); !math.IsNaN(nu) { // undefined for short chains
			exponent = ", nu " + store.WithError(nu, float64(s.Results.NuSE))
		}
		fmt.Fprintf(m.Log, "%s: Rg %s nm, end to end %s nm%s\n", s.Name,
			store.WithError(float64(rg.Mean), float64(rg.SE)), store.WithError(float64(ree.Mean), float64(ree.SE)), exponent)
		about = append(about, warned{s.Name, s.Warnings})
	}
	for _, w := range mergeWarnings(about) {
		store.Warn(m.Log, w)
	}
}

// origin returns the provenance of the results of a sequence.
func (s *system) origin() store.Origin {
	return store.Origin{
		Molrun: s.settings.Molrun, Engine: madeBy, Digest: s.settingsHash(),
		Conditions: s.settings.Describe() + fmt.Sprintf(", seed %d", s.settings.Seed),
	}
}

// settingsHash identifies settings that give the same results. The number of cores does
// not affect them, and warnings are derived from the other settings.
func (s *system) settingsHash() []byte {
	settings := *s.settings
	settings.Cores = 0
	settings.Sequences = slices.Clone(settings.Sequences)
	for i := range settings.Sequences {
		settings.Sequences[i].Warnings = nil
	}
	return run.SettingsHash(engineName, engineVersion, s.index, settings)
}
