package condensate

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"molrun/app/base/unit"
	"molrun/app/engine/md"
	"molrun/app/engine/run"
	"molrun/app/engine/store"
)

// saveEvery is the maximum time between saves of intermediate results.
const saveEvery = 60 * time.Second

// simulation is one call of Run. Its replicas run one after another, and a team of
// workers shares the work of a step.
type simulation struct {
	run.Run[*replica]
	run.Part[*replica]
	*system
	team     *md.Team
	contacts *contacts
	history  *history

	final *summary // nil until all replicas have finished
}

// Run simulates the chains. It writes results below dir and progress to log. When ctx is
// canceled, it soon returns the error of ctx and leaves the results so far, marked as
// incomplete. If dir holds a checkpoint of the same settings, Run resumes from it, and
// the results are those of an uninterrupted run.
func Run(ctx context.Context, s *Settings, dir string, log io.Writer) error {
	if len(s.Components) == 0 {
		return fmt.Errorf("the settings name the FASTA file %q, but its content was not given", s.fasta)
	}
	m := newSimulation(s, dir, log)
	defer m.team.Close()
	return m.runAll(ctx)
}

func newSimulation(s *Settings, dir string, log io.Writer) *simulation {
	m := &simulation{system: newSystem(s), team: md.NewTeam(s.Cores)}
	m.Part = run.Part[*replica]{
		System: m, Folder: dir, Count: s.Replicas, Steps: s.Steps, Cost: 1, Hash: s.hash(),
	}
	m.Run = run.Run[*replica]{Parts: []*run.Part[*replica]{&m.Part}, Workers: 1, Log: log, SaveEvery: saveEvery}
	m.Reset()
	return m
}

// origin returns the provenance of the results.
func (s *Settings) origin() store.Origin {
	return store.Origin{
		Molrun: s.Molrun, Engine: madeBy, Digest: s.hash(),
		Conditions: s.Conditions.Describe() + fmt.Sprintf(", seed %d", s.Seed),
	}
}

// hash identifies settings that give the same results. The number of cores does not
// affect them, and warnings are derived from the other settings.
func (s *Settings) hash() []byte {
	settings := *s
	settings.Cores, settings.Warnings = 0, nil
	return run.SettingsHash(engineName, engineVersion, settings)
}

func (m *simulation) runAll(ctx context.Context) error {
	if err := os.MkdirAll(m.Folder, 0o755); err != nil {
		return err
	}
	m.announce()
	if err := m.Compute(ctx); err != nil {
		return err
	}
	for _, line := range m.final.sentences() {
		fmt.Fprintln(m.Log, line)
	}
	for _, w := range m.final.Warnings {
		store.Warn(m.Log, w)
	}
	return m.End()
}

func (m *simulation) announce() {
	s := m.Settings
	fmt.Fprintf(m.Log, "%s %s, %s: %s, %s, in a box of %s x %s x %s nm (%s), %s, %s; about %s on an idle machine\n",
		engineName, engineVersion, modelName, unit.Count(s.chains(), "chain"), unit.Count(s.beads(), "residue"),
		short(s.Box.X), short(s.Box.Y), short(s.Box.Z), s.Protocol, unit.Count(s.Replicas, "replica"), unit.Count(s.Cores, "core"),
		store.ShortDuration(s.Estimate().Seconds()))
	if s.Protocol == Slab {
		fmt.Fprintf(m.Log, "in this box, dilute concentrations below about %.2g mM can only be bounded\n", s.minDiluteConcentration())
	}
	for _, w := range s.Warnings {
		fmt.Fprintf(m.Log, "warning: %s\n", w)
	}
}

func short(v float64) string { return fmt.Sprintf("%.4g", v) }

// New, like the methods below, implements run.System.
func (m *simulation) New(number int) *replica { return newReplica(m, number) }

// Gather releases data that finished replicas no longer need.
func (m *simulation) Gather(begun []*replica) {
	for _, r := range begun {
		r.Lock()
		if r.Reached() == m.plan.steps {
			r.motion, r.track = nil, nil
		}
		r.Unlock()
	}
}

func (m *simulation) Archive(a *md.Archive) {
	m.contacts.archive(a)
	m.history.archive(a)
}

func (m *simulation) Reset() { m.contacts, m.history = newContacts(m.system), newHistory(m.system) }

// Write locks all replicas while it writes, since they share contacts and history.
func (m *simulation) Write(replicas []*replica, complete bool) error {
	for _, r := range replicas {
		r.Lock()
		defer r.Unlock()
	}
	s, err := (&results{m, replicas}).writeFiles(complete)
	if complete {
		m.final = s
	}
	return err
}
