package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/bench"
	"molrun/app/unit"
)

// benchCommand measures this program; make bench runs it. It is hidden: nobody
// needs it to run a service.
func benchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:    "bench",
		Short:  "Measure this program next to what the machine allows",
		Hidden: true,
	}
	c.AddCommand(benchSeedCommand(), benchRunCommand(), benchGrowCommand(), benchBareCommand())
	return c
}

func benchSeedCommand() *cobra.Command {
	var jobs int
	c := &cobra.Command{
		Use:     "seed",
		Short:   "Fill a new data directory with finished jobs",
		Example: "  molrun bench seed --data million --jobs 1000000",
		Args:    cobra.NoArgs,
	}
	flags := addConfigFlags(c, false)
	c.Flags().IntVar(&jobs, "jobs", 1_000_000, "how many")
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := flags.load()
		if err != nil {
			return err
		}
		began := time.Now()
		if err := bench.Seed(c.Context(), config.Data, jobs, nil); err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "%d jobs in %s\n", jobs, time.Since(began).Round(time.Millisecond))
		return err
	}
	return c
}

func benchRunCommand() *cobra.Command {
	o := bench.Options{}
	var size, hole string
	var asLines bool
	c := &cobra.Command{
		Use:     "run [MEASUREMENT ...]",
		Short:   "Measure everything in rounds and print the goals",
		Example: "  molrun bench run --jobs 100000 --rounds 5 submit list",
	}
	f := c.Flags()
	f.IntVar(&o.Jobs, "jobs", 1_000_000, "in the large database")
	f.IntVar(&o.Rounds, "rounds", 5, "of all measurements; the table has the medians")
	f.DurationVar(&o.For, "for", 2*time.Second, "how long one measurement takes")
	f.StringVar(&o.Dir, "dir", "", "where to write; all of it is removed (default the system's place for such)")
	f.StringVar(&o.Data, "seeded", "", "data directory that bench seed has filled, to be copied")
	f.StringVar(&size, "size", "1GiB", "of the files that are moved")
	f.StringVar(&hole, "largest", "10GiB", "of the largest file in a result, which takes no room")
	f.BoolVar(&asLines, "json", false, "print each run as a line of JSON instead of the table")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if o.Program, err = os.Executable(); err != nil {
			return err
		}
		if o.Size, err = parseSize("--size", size); err != nil {
			return err
		}
		if o.Hole, err = parseSize("--largest", hole); err != nil {
			return err
		}
		o.Table, o.Log = c.OutOrStdout(), c.ErrOrStderr()
		if asLines {
			o.Table, o.Lines = io.Discard, c.OutOrStdout()
		}
		return bench.Table(c.Context(), o, args...)
	}
	return c
}

func benchGrowCommand() *cobra.Command {
	o := bench.Options{}
	var numbers []int
	var plot string
	c := &cobra.Command{
		Use:     "grow",
		Short:   "Measure what depends on how many jobs there are",
		Example: "  molrun bench grow --jobs 1000,10000,100000,1000000 --svg growth.svg",
		Args:    cobra.NoArgs,
	}
	f := c.Flags()
	f.IntSliceVar(&numbers, "jobs", []int{1000, 10_000, 100_000, 1_000_000}, "in the databases, one after the other")
	f.DurationVar(&o.For, "for", 2*time.Second, "how long one measurement takes")
	f.StringVar(&o.Dir, "dir", "", "where to write; all of it is removed (default the system's place for such)")
	f.StringVar(&o.Data, "seeded", "", "data directory that bench seed has filled with the last number of jobs, to be copied")
	f.StringVar(&plot, "svg", "", "file that gets a drawing")
	c.RunE = func(c *cobra.Command, _ []string) (err error) {
		if o.Program, err = os.Executable(); err != nil {
			return err
		}
		o.Lines, o.Log = c.OutOrStdout(), c.ErrOrStderr()
		return bench.Growth(c.Context(), o, numbers, plot)
	}
	return c
}

// benchBareCommand is started by the run.
func benchBareCommand() *cobra.Command {
	var dir, address string
	c := &cobra.Command{
		Use:   "bare",
		Short: "Serve the files of a folder with the standard library alone",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return bench.Bare(c.Context(), dir, address) },
	}
	c.Flags().StringVar(&dir, "files", "", "the folder")
	c.Flags().StringVar(&address, "listen", "", "address")
	return c
}

func parseSize(flag, text string) (int64, error) {
	var size unit.Bytes
	if err := size.UnmarshalText([]byte(text)); err != nil {
		return 0, usageError{fmt.Errorf("%s: %w", flag, err)}
	}
	return int64(size), nil
}
