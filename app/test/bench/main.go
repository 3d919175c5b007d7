// Command bench measures molrun against the limits of the machine. It starts real servers
// as child processes and drives them over HTTP. In the same round it measures the limits
// that molrun cannot beat (bare group commits to bbolt, bare process starts) and its
// peers (nginx, OpenSSL). Absolute values depend on the machine and on noise from other
// virtual machines; ratios within a round depend on the program.
//
//	go run ./app/test/bench run     # all measurements, in rounds, against their goals
//	go run ./app/test/bench grow    # costs that might depend on the number of jobs
//	go run ./app/test/bench rows    # a batch of short jobs, compared with xargs
//	go run ./app/test/bench seed    # a data directory full of finished jobs
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/cli/remote"
)

func main() { os.Exit(run(os.Args[1:])) }

// run executes the command line and returns the exit code of the process.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal kills the process
	root := &cobra.Command{
		Use:           "bench",
		Short:         "Measure molrun next to what the machine allows",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return remote.Usage(err) })
	root.AddCommand(runCommand(), growCommand(), rowsCommand(), seedCommand(), bareCommand(),
		childCommand("person", runPerson), childCommand("crowd", runCrowdProcess))
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "bench:", err)
	if errors.As(err, new(remote.UsageError)) {
		return exitUsage
	}
	return 1
}

const exitUsage = 2

func runCommand() *cobra.Command {
	o := options{Size: 1 << 30, Largest: 10 << 30}
	var asJSON bool
	c := &cobra.Command{
		Use:     "run [MEASUREMENT ...]",
		Short:   "Run all measurements in rounds and print the goals",
		Example: "  go run ./app/test/bench run --jobs 100000 --rounds 5 submit list",
	}
	f := c.Flags()
	addFlags(f, &o)
	f.IntVar(&o.Jobs, "jobs", 1_000_000, "jobs in the large database")
	f.IntVar(&o.Rounds, "rounds", 5, "rounds of all measurements; the table shows medians")
	f.StringVar(&o.Seeded, "seeded", "", "copy this data directory, made by bench seed, instead of seeding one")
	f.Var(size{&o.Size}, "size", "size of uploaded and downloaded files")
	f.Var(size{&o.Largest}, "largest", "size of the largest result file, which is sparse")
	f.BoolVar(&asJSON, "json", false, "print each measurement as a line of JSON instead of the table")
	c.RunE = func(c *cobra.Command, args []string) error {
		o.Table, o.Log = c.OutOrStdout(), c.ErrOrStderr()
		if asJSON {
			o.Table, o.Lines = io.Discard, c.OutOrStdout()
		}
		return withMolrun(c.Context(), o, func(o options) error { return runRounds(c.Context(), o, args) })
	}
	return c
}

func growCommand() *cobra.Command {
	o := options{}
	var numbers []int
	var plot string
	c := &cobra.Command{
		Use:     "grow",
		Short:   "Measure costs that may depend on the number of jobs",
		Example: "  go run ./app/test/bench grow --jobs 1000,10000,100000,1000000 --svg growth.svg",
		Args:    cobra.NoArgs,
	}
	f := c.Flags()
	addFlags(f, &o)
	f.IntSliceVar(&numbers, "jobs", []int{1000, 10_000, 100_000, 1_000_000}, "jobs in each database, measured one after the other")
	f.StringVar(&o.Seeded, "seeded", "", "copy this data directory, made by bench seed, for the last number of jobs")
	f.StringSliceVar(&o.Only, "only", []string{onlyCosts, onlyFilters, onlyTable}, "what to measure: costs, filters next to a page without, the table of a batch")
	f.StringVar(&plot, "svg", "", "file to draw the costs in")
	c.RunE = func(c *cobra.Command, _ []string) error {
		o.Lines, o.Log = c.OutOrStdout(), c.ErrOrStderr()
		return withMolrun(c.Context(), o, func(o options) error { return measureGrowth(c.Context(), o, numbers, plot) })
	}
	return c
}

func rowsCommand() *cobra.Command {
	o, r := options{}, shortRows{}
	c := &cobra.Command{
		Use:     "rows",
		Short:   "Measure a batch of short rows next to xargs with the same program",
		Example: "  go run ./app/test/bench rows --rows 10000 --seconds 0.1 --peer 1000 --sandbox",
		Args:    cobra.NoArgs,
	}
	f := c.Flags()
	addPlaces(f, &o)
	f.IntVar(&o.Rounds, "rounds", 1, "rounds, each with a new service")
	f.IntVar(&r.Rows, "rows", 500, "rows of the batch")
	f.Float64Var(&r.Seconds, "seconds", 0, "seconds that the program of a row sleeps; 0: /bin/true")
	f.BoolVar(&r.Sandbox, "sandbox", false, "run each row in a sandbox, and the programs of xargs in one of bwrap")
	f.IntVar(&r.Peer, "peer", 0, "programs that xargs starts before the batch, and again after it (default: as many as rows)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if r.Rows < 1 || r.Seconds < 0 || r.Peer < 0 {
			return remote.Usagef("give at least one row, and no negative numbers")
		}
		r.Peer = cmp.Or(r.Peer, r.Rows)
		o.Lines, o.Log = c.OutOrStdout(), c.ErrOrStderr()
		return withMolrun(c.Context(), o, func(o options) error { return measureRows(c.Context(), o, r) })
	}
	return c
}

// withMolrun runs a measurement with the molrun binary named in the options, or builds
// one for it.
func withMolrun(ctx context.Context, o options, measure func(options) error) (err error) {
	if o.Molrun != "" {
		return measure(o)
	}
	dir, err := os.MkdirTemp(o.Dir, "molrun-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	o.Molrun = filepath.Join(dir, "molrun")
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", o.Molrun, "molrun")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build molrun: %w\n%s", err, out)
	}
	return measure(o)
}

func seedCommand() *cobra.Command {
	var data string
	var jobs int
	c := &cobra.Command{
		Use:     "seed",
		Short:   "Fill a new data directory with finished jobs",
		Example: "  go run ./app/test/bench seed --data million --jobs 1000000",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			began := time.Now()
			if err := seed(c.Context(), data, jobs, nil); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "%d jobs in %s\n", jobs, time.Since(began).Round(time.Millisecond))
			return err
		},
	}
	c.Flags().StringVar(&data, "data", "", "data directory")
	c.Flags().IntVar(&jobs, "jobs", 1_000_000, "number of jobs")
	_ = c.MarkFlagRequired("data") // fails only for a flag that does not exist
	return c
}

// bareCommand returns the command that run starts as the separate process of serveBare.
func bareCommand() *cobra.Command {
	var dir, address string
	c := &cobra.Command{
		Use:    "bare",
		Short:  "Serve the files of a directory with the standard library alone",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE:   func(c *cobra.Command, _ []string) error { return serveBare(c.Context(), dir, address) },
	}
	c.Flags().StringVar(&dir, "files", "", "the directory")
	c.Flags().StringVar(&address, "listen", "", "address to listen on")
	return c
}

// childCommand returns a command that run starts as a separate process, and that reads
// its instructions from standard input.
func childCommand(name string, run func(context.Context, io.Reader, io.Writer) error) *cobra.Command {
	return &cobra.Command{
		Use:    name,
		Short:  "Part of a measurement",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE:   func(c *cobra.Command, _ []string) error { return run(c.Context(), c.InOrStdin(), c.OutOrStdout()) },
	}
}
