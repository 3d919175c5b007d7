package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"molrun/app/algorithm"
	"molrun/app/algorithm/builtin"
	"molrun/app/base/fault"
	"molrun/app/cli/remote"
	"molrun/app/cli/trial"
	"molrun/app/client"
	"molrun/app/job/apikey"
	"molrun/app/server"
	"molrun/app/server/config"
	"molrun/app/server/host"
)

// exampleTime is the default time limit of an example.
const exampleTime = 10 * time.Minute

// trialOptions are the flags of molrun algorithms test.
type trialOptions struct {
	all, json bool
	limit     time.Duration
	keep      bool // keep the data directory
}

func algorithmsTestCommand() *cobra.Command {
	var o trialOptions
	c := &cobra.Command{
		Use:   "test [TYPE|FILE|FOLDER...]",
		Short: "Run the examples of algorithms and check their results",
		Long: `Run the example of each algorithm on a temporary service: a free local port and a new data
directory, otherwise the site's configuration. The example's files are uploaded, the job is
submitted, and its result is compared with the algorithm file: the files and ranges of metrics
in [example.expect], the required [[outputs]], and whether every view opens. First, the probe
of the file, or its version_command, must work in a sandbox like that of jobs.

The exit status is 0 if all examples passed, 1 if one failed, 7 if none could run. Algorithms
that are not ready count as failed if they are named, and are only listed with --all.`,
		Example: `  molrun algorithms test cg-idp
  molrun algorithms test ./my-type.toml ./my-folder
  molrun algorithms test --all`,
	}
	flags := addConfigFlags(c, false)
	flags.set.Lookup("data").Usage = "data directory to use and keep (default a temporary one, which is removed)"
	c.Flags().BoolVar(&o.all, "all", false, "test every algorithm that is ready")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	c.Flags().DurationVar(&o.limit, "limit", exampleTime, "time limit of one example")
	c.RunE = func(c *cobra.Command, args []string) error {
		if o.all == (len(args) > 0) {
			return remote.Usagef("%s requires types, files or folders, or --all", c.CommandPath())
		}
		o.keep = flags.set.Changed("data")
		config, err := flags.loadConfig()
		if err != nil {
			return err
		}
		chosen, err := chooseAlgorithms(c, flags, args)
		if err != nil {
			return err
		}
		return testAlgorithms(c, config, chosen, o)
	}
	return c
}

// chooseAlgorithms returns the algorithms that the arguments name, or all of them.
func chooseAlgorithms(c *cobra.Command, flags *configFlags, args []string) ([]*algorithm.File, error) {
	catalogue, _, err := loadCatalogue(c, flags)
	if err != nil {
		return nil, err
	}
	var chosen []*algorithm.File
	if len(args) == 0 {
		args = catalogue.Types()
	}
	for _, arg := range args {
		a, ok := catalogue.Find(arg, "")
		if !ok || strings.ContainsRune(arg, filepath.Separator) {
			for _, file := range builtin.Within(arg) {
				if a, err = readAlgorithm(c, file); err != nil {
					return nil, err
				}
				chosen = append(chosen, a)
			}
			continue
		}
		chosen = append(chosen, a)
	}
	return chosen, nil
}

// readAlgorithm reads an algorithm file and prints its errors.
func readAlgorithm(c *cobra.Command, file string) (*algorithm.File, error) {
	a, mistakes, err := builtin.ReadAlgorithm(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Errorf(fault.NotFound, "there is no algorithm or file named %q; `molrun algorithms list` shows the algorithms", file)
	}
	if err != nil {
		return nil, err
	}
	for _, m := range mistakes {
		fmt.Fprintln(c.ErrOrStderr(), m)
	}
	if len(mistakes) > 0 {
		fmt.Fprintln(c.ErrOrStderr(), "molrun:", mistakesText(len(mistakes)))
		return nil, silent{exitInvalid}
	}
	return a, nil
}

// trialConfig derives the configuration of a test service from the site's: without the
// settings for users, quotas and the network. On a cluster, it uses its own folder and
// names.
func trialConfig(c config.Config, data string) (config.Config, error) {
	plain := config.Default()
	c.Data = data
	c.Quota, c.UserQuota, c.Organizations, c.Retention = plain.Quota, plain.UserQuota, nil, plain.Retention
	c.Notify, c.Mail = plain.Notify, plain.Mail
	c.Limits, c.Rates, c.Proxy, c.SignIn, c.CORS, c.TLS = plain.Limits, plain.Rates, plain.Proxy, plain.SignIn, plain.CORS, plain.TLS
	if !c.Slurm.On() {
		return c, nil
	}
	shared, err := os.MkdirTemp(c.Slurm.SharedDir, ".test-")
	c.Slurm.SharedDir, c.Slurm.Prefix = shared, "test-"+c.Slurm.Prefix
	return c, err
}

// testAlgorithms starts a service that offers these algorithms, and tests them.
func testAlgorithms(c *cobra.Command, site config.Config, chosen []*algorithm.File, o trialOptions) (err error) {
	data := site.Data
	if !o.keep {
		if data, err = os.MkdirTemp("", "molrun-test-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, removeAll(data)) }()
	}
	site, err = trialConfig(site, data)
	if site.Slurm.On() {
		defer func() { err = errors.Join(err, removeAll(site.Slurm.SharedDir)) }()
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	logFile, err := os.OpenFile(filepath.Join(data, "test.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer logFile.Close()
	report := newTrialReport(c.OutOrStdout(), chosen, o)
	err = server.RunWhile(c.Context(), site, server.Options{
		Init: true,
		Log:  zerolog.New(logFile).With().Timestamp().Logger(), Version: version, Algorithms: chosen,
	}, func(ctx context.Context, base string) error {
		return runTrials(ctx, site, base, chosen, o.limit, report.addOutcome)
	})
	if sum := report.finish(); err == nil {
		err = sum
	}
	return err
}

// runTrials tests algorithms on the service at base. When it returns, no job is running.
func runTrials(ctx context.Context, c config.Config, base string, chosen []*algorithm.File, limit time.Duration, show func(*trial.Outcome)) error {
	key, err := host.Control(c.Data).CreateKey(ctx, client.KeyRequest{
		Organization: "test", Email: "test@molrun.example", Role: string(apikey.Member), Expires: 24 * time.Hour,
	})
	if err != nil {
		return fmt.Errorf("create a key: %w", err)
	}
	here, _ := host.Inspect(c) // undetected hardware counts as absent
	program, _ := os.Executable()
	tester := trial.Tester{
		API: client.New(base, key.Secret), Patience: limit,
		Probe: func(ctx context.Context, a *algorithm.File) error { return here.Probe(ctx, a, program) },
	}
	defer tester.API.Close()
	tester.TestAll(ctx, chosen, here.Capacity.CPUs, show)
	if ctx.Err() == nil {
		return nil
	}
	return errors.Join(errors.New("interrupted"), tester.StopAll(ctx))
}

// removeAll removes a directory even if it contains read-only directories.
func removeAll(dir string) error {
	_ = filepath.WalkDir(dir, func(name string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			return os.Chmod(name, 0o700)
		}
		return nil
	}) // RemoveAll reports any failure
	return os.RemoveAll(dir)
}

// trialReport prints outcomes as they arrive.
type trialReport struct {
	out                     io.Writer
	options                 trialOptions
	typeWidth, longest      int // column widths of types and versions
	outcomes                []*trial.Outcome
	passed, failed, unready int
}

func newTrialReport(out io.Writer, chosen []*algorithm.File, o trialOptions) *trialReport {
	r := &trialReport{out: out, options: o, typeWidth: len("TYPE"), longest: len("VERSION"), outcomes: []*trial.Outcome{}}
	for _, a := range chosen {
		r.typeWidth, r.longest = max(r.typeWidth, len(a.Type)), max(r.longest, len(a.Version))
	}
	if !o.json {
		r.line("TYPE", "VERSION", "SECONDS", "STATE", "METRICS AND VIEWS")
	}
	return r
}

func (r *trialReport) line(typ, version, seconds, state, rest string) {
	fmt.Fprintf(r.out, "%-*s  %-*s  %7s  %-9s  %s\n", r.typeWidth, typ, r.longest, version, seconds, state, rest)
}

func (r *trialReport) addOutcome(o *trial.Outcome) {
	r.outcomes = append(r.outcomes, o)
	unready := !o.Ready && len(o.Faults) == 0
	switch {
	case o.Passed():
		r.passed++
	case unready:
		r.unready++
	default:
		r.failed++
	}
	if r.options.json {
		return
	}
	switch {
	case unready:
		r.line(o.Type, o.Version, "-", "not ready", strings.Join(o.Missing, "; "))
	case o.Status == "":
		r.line(o.Type, o.Version, "-", "not run", "")
	default:
		r.line(o.Type, o.Version, fmt.Sprintf("%.1f", o.Seconds), o.Status, resultText(o))
	}
	for _, text := range o.Faults {
		fmt.Fprintln(r.out, "    FAILED:", text)
	}
	for line := range strings.Lines(o.LogTail) {
		fmt.Fprintln(r.out, "    |", strings.TrimSuffix(line, "\n"))
	}
}

// resultText summarizes what was found in a result.
func resultText(o *trial.Outcome) string {
	var parts []string
	for _, m := range o.Metrics {
		parts = append(parts, m.String())
	}
	if len(o.MissingMetrics) > 0 {
		parts = append(parts, "not found: "+strings.Join(o.MissingMetrics, " "))
	}
	opened, empty := 0, ""
	for _, v := range o.Views {
		switch {
		case v.Opened > 0:
			opened++
		case v.Files > 0:
			empty += " " + v.Name
		}
	}
	parts = append(parts, fmt.Sprintf("%d of %d views", opened, len(o.Views)))
	if empty != "" {
		parts = append(parts, "nothing in"+empty)
	}
	return strings.Join(parts, ", ")
}

// finish prints the totals and returns the corresponding error.
func (r *trialReport) finish() error {
	if r.options.json {
		if err := printJSON(r.out, r.outcomes); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(r.out, "%d passed, %d failed, %d not ready\n", r.passed, r.failed, r.unready)
	}
	switch {
	case r.passed+r.failed == 0:
		return silent{exitUntested}
	case r.failed > 0 || !r.options.all && r.unready > 0:
		return silent{exitFailed}
	}
	return nil
}
