package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"molrun/app/cli/remote"
	"molrun/app/engine/cgidp"
	"molrun/app/engine/condensate"
	"molrun/app/engine/input"
	"molrun/app/engine/seqprop"
)

func engineCommand() *cobra.Command {
	c := &cobra.Command{Use: "engine", Short: "Run a built-in engine directly"}
	c.AddCommand(cgidpCommand(), condensateCommand(), binodalCommand(), propertiesCommand(), summaryCommand(), pdbCommand())
	return c
}

// simulationFlags are the arguments that cg-idp.toml and cg-condensate.toml pass.
type simulationFlags struct {
	settings, fasta, out string
	validate             bool
}

// simulation is a simulation engine for proteins.
type simulation struct {
	check input.Check
	run   func(ctx context.Context, settings, fasta []byte, out string, log io.Writer) error
}

func cgidpCommand() *cobra.Command {
	return simulationCommand(&cobra.Command{
		Use:   "cg-idp",
		Short: "Simulate disordered proteins (CALVADOS 2)",
		Long: `Simulate disordered proteins with the CALVADOS 2 model and write the results to a folder.
With --validate, read one settings document per line from standard input and print its
errors as one array per line.`,
		Example: `  echo '{"sequences":["DSHAKRHHGYKRKFHEKHHSHRGY"],"temperature_K":293,"steps":100000}' > hst5.json
  molrun engine cg-idp --settings hst5.json --out hst5`,
	}, simulation{cgidp.Check, func(ctx context.Context, settings, fasta []byte, out string, log io.Writer) error {
		s, _ := cgidp.Parse(settings, fasta)
		s.Molrun = version
		return cgidp.Run(ctx, s, out, log)
	}})
}

func condensateCommand() *cobra.Command {
	return simulationCommand(&cobra.Command{
		Use:   "cg-condensate",
		Short: "Simulate a condensate of disordered proteins (CALVADOS 2)",
		Long: `Simulate many chains of disordered proteins with the CALVADOS 2 model, to find whether and at
which concentration they condense. Results are written to a folder. With --validate, read one
settings document per line from standard input and print its errors as one array per line.`,
		Example: `  echo '{"components":[{"sequence":"GFYRGSYDGFYRGSYDGFYRGSYD","copies":60}],"steps":200000}' > slab.json
  molrun engine cg-condensate --settings slab.json --out slab`,
	}, simulation{condensate.Check, func(ctx context.Context, settings, fasta []byte, out string, log io.Writer) error {
		s, _ := condensate.Parse(settings, fasta)
		s.Molrun = version
		return condensate.Run(ctx, s, out, log)
	}})
}

// simulationCommand adds the flags and the run function to a command.
func simulationCommand(c *cobra.Command, e simulation) *cobra.Command {
	var f simulationFlags
	c.Args = cobra.NoArgs
	c.Flags().StringVar(&f.settings, "settings", "", "JSON file with the settings")
	c.Flags().StringVar(&f.fasta, "fasta", "", "FASTA file, if the settings name one")
	c.Flags().StringVar(&f.out, "out", "", "folder for the results")
	c.Flags().BoolVar(&f.validate, "validate", false, "validate settings read from standard input")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if f.validate {
			return input.Validate(c.Context(), e.check, f.fasta, c.InOrStdin(), c.OutOrStdout())
		}
		return f.simulate(c, e)
	}
	return c
}

func (f *simulationFlags) simulate(c *cobra.Command, e simulation) error {
	if f.settings == "" || f.out == "" {
		return remote.Usagef("specify --settings FILE and --out DIR")
	}
	fasta, err := input.ReadFASTA(f.fasta)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(f.settings)
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	faults := e.check(text, fasta)
	for _, fault := range faults {
		fmt.Fprintf(c.ErrOrStderr(), "%v: %s\n", fault.Loc, fault.Msg)
	}
	if len(faults) > 0 {
		return silent{exitInvalid}
	}
	return e.run(c.Context(), text, fasta, f.out, c.OutOrStdout())
}

func propertiesCommand() *cobra.Command {
	var fasta, out string
	var o seqprop.Options
	c := &cobra.Command{
		Use:     "sequence-properties",
		Short:   "Calculate properties of protein sequences",
		Example: "  molrun engine sequence-properties --fasta proteins.fasta --out properties",
		Args:    cobra.NoArgs,
	}
	c.Flags().StringVar(&fasta, "fasta", "", "FASTA file with protein sequences")
	c.Flags().Float64Var(&o.PH, "pH", 7.4, "pH of the net charge")
	c.Flags().IntVar(&o.Window, "window", 9, "window of profiles, in residues")
	c.Flags().StringVar(&out, "out", "", "folder for the results")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if fasta == "" || out == "" || o.Window < 1 {
			return remote.Usagef("specify --fasta FILE, --out DIR and a window of at least 1")
		}
		text, err := os.ReadFile(fasta)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(out, 0o755); err != nil {
			return err
		}
		return seqprop.Run(c.Context(), text, o, out, c.OutOrStdout())
	}
	return c
}
