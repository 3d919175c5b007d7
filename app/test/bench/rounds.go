package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// measurements lists the measurements in order. Those compared with each other are
// adjacent.
var measurements = []struct {
	name string
	run  func(context.Context, *testbed, figures) error
}{
	{"sync", measureSync},
	{"submit", measureSubmit},
	{"submit-one", measureSubmitOne},
	{"listeners", measureListeners},
	{"list", measureList},
	{"filters", measureFilters},
	{"list-while-submitting", measureListUnderLoad},
	{"list-while-checking", measureListUnderChecks},
	{"download", measureDownload},
	{"ranges", measureRanges},
	{"upload", measureUpload},
	{"archive", measureArchive},
	{"memory", measureMemory},
	{"jobs", measureJobs},
	{"start", measureStart},
	{"cold-start", measureColdStart},
	{"idle", measureIdle},
}

// runRounds runs the named measurements, or all of them, in rounds and prints the goals.
func runRounds(ctx context.Context, o options, only []string) (err error) {
	b := &testbed{options: o}
	defer func() { err = errors.Join(err, b.close()) }()
	seeding, err := b.open(ctx)
	if err != nil {
		return err
	}
	printLine(o.Lines, 0, "seed", o.Jobs, seeding)
	var rounds []figures
	for round := range o.Rounds {
		all := maps.Clone(seeding)
		for _, m := range measurements {
			if len(only) > 0 && !slices.Contains(only, m.name) {
				continue
			}
			o.logf("round %d of %d: %s", round+1, o.Rounds, m.name)
			f := figures{}
			if err := m.run(ctx, b, f); err != nil {
				return fmt.Errorf("measure %s: %w", m.name, err)
			}
			printLine(o.Lines, round+1, m.name, o.Jobs, f)
			maps.Copy(all, f)
		}
		rounds = append(rounds, all)
	}
	printTable(o.Table, judge(rounds), b.missing())
	return nil
}
