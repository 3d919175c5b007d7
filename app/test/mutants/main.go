// Command mutants tests the tests: it plants one small mistake at a time in the
// code (a comparison moved, a check or an fsync dropped, an error swallowed) and
// runs the nearest tests that reach that line. A mutant that no test fails with
// has survived: either a test is missing, or the mutant is equivalent and belongs
// in equivalent.txt with the reason.
//
//	go run ./app/test/mutants                      # a sample of every package
//	go run ./app/test/mutants -lines 50 ./storage  # a larger sample of one
//
// The sample is the same for the same seed and changes little when the code does,
// because mutants are known by their text rather than by their line. Killed ones
// are remembered in .cache/mutants, so a second run plants only what is new and
// what survived. The work tree is never touched: the compiler reads the mutated
// file through an overlay. Tests run in a PID namespace of their own where that is
// allowed, so a mutant that kills the wrong process finds nobody.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	Lines    int           // one mutant for so many lines
	Min, Max int           // bounds of the mutants of one package
	Seed     string        // another seed draws another sample
	Budget   time.Duration // tests of one mutant take about so long on the clean code
	Slowest  time.Duration // tests slower than this are not run
	Until    time.Duration // stop planting after this time; 0 = never
	Fresh    bool          // forget what was killed before
	Patterns []string      // packages as the go command names them
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	o := options{Patterns: []string{"./..."}}
	flag.IntVar(&o.Lines, "lines", 120, "plant one mutant for so many lines of a package")
	flag.IntVar(&o.Min, "min", 3, "at least so many per package")
	flag.IntVar(&o.Max, "max", 25, "at most so many per package")
	flag.StringVar(&o.Seed, "seed", "1", "another seed draws another sample")
	flag.DurationVar(&o.Budget, "budget", 20*time.Second, "run as many tests as take so long on the clean code, fastest first")
	flag.DurationVar(&o.Slowest, "slowest", 20*time.Second, "leave out tests that take longer on the clean code")
	flag.DurationVar(&o.Until, "for", 0, "stop after this time; the next run goes on from there")
	flag.BoolVar(&o.Fresh, "fresh", false, "plant again what was killed before")
	flag.Parse()
	if flag.NArg() > 0 {
		o.Patterns = flag.Args()
	}
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run plants the sample of every package and prints the table. It fails only when
// mutants cannot be planted, not when they survive.
func run(ctx context.Context, o options, table, log io.Writer) error {
	pkgs, err := listPackages(ctx, o.Patterns)
	if err != nil {
		return err
	}
	known, err := readEquivalents(equivalents)
	if err != nil {
		return err
	}
	memory, err := openMemory(pkgs[0].Module.Dir, o.Fresh)
	if err != nil {
		return err
	}
	defer memory.close()
	scratch, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if o.Until > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Until)
		defer cancel()
	}

	var r report
	l := lab{options: o, known: known, memory: memory, scratch: scratch, log: log}
	for _, p := range pkgs {
		row, err := l.plant(ctx, p)
		if ctx.Err() != nil {
			fmt.Fprintln(log, "stopped; the next run goes on from here")
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.path(), err)
		}
		r.add(row)
	}
	return r.write(table)
}
