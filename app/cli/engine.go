package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"molrun/app/engine/cgidp"
	"molrun/app/engine/seqprop"
)

func engineCommand() *cobra.Command {
	c := &cobra.Command{Use: "engine", Short: "Run a built-in engine by hand"}
	c.AddCommand(cgidpCommand(), propertiesCommand(), summaryCommand(), pdbCommand())
	return c
}

// cgidpFlags are the arguments in cg-idp.toml.
type cgidpFlags struct {
	settings, fasta, out string
	validate             bool
}

func cgidpCommand() *cobra.Command {
	var f cgidpFlags
	c := &cobra.Command{
		Use:   "cg-idp",
		Short: "Residue-level Langevin dynamics of disordered proteins (CALVADOS 2)",
		Long: `Simulate disordered proteins with the CALVADOS 2 model and write the results
below a folder. With --validate, read one settings document a line from standard
input and print its faults, one array a line.`,
		Example: `  echo '{"sequences":["DSHAKRHHGYKRKFHEKHHSHRGY"],"temperature_K":293,"steps":100000}' > hst5.json
  molrun engine cg-idp --settings hst5.json --out hst5`,
		Args: cobra.NoArgs,
	}
	c.Flags().StringVar(&f.settings, "settings", "", "JSON file of the settings")
	c.Flags().StringVar(&f.fasta, "fasta", "", "FASTA file, where the settings name one")
	c.Flags().StringVar(&f.out, "out", "", "folder for the results")
	c.Flags().BoolVar(&f.validate, "validate", false, "only check settings read from standard input")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if f.validate {
			return cgidp.Validate(c.Context(), f.fasta, c.InOrStdin(), c.OutOrStdout())
		}
		return f.simulate(c)
	}
	return c
}

func (f *cgidpFlags) simulate(c *cobra.Command) error {
	if f.settings == "" || f.out == "" {
		return usageError{errors.New("give --settings FILE and --out DIR")}
	}
	fasta, err := cgidp.ReadFASTA(f.fasta)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(f.settings)
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	settings, faults := cgidp.Parse(text, fasta)
	for _, fault := range faults {
		fmt.Fprintf(c.ErrOrStderr(), "%v: %s\n", fault.Loc, fault.Msg)
	}
	if len(faults) > 0 {
		return silent{exitInvalid}
	}
	return cgidp.Run(c.Context(), settings, f.out, c.OutOrStdout())
}

func propertiesCommand() *cobra.Command {
	var fasta, out string
	var o seqprop.Options
	c := &cobra.Command{
		Use:     "sequence-properties",
		Short:   "Mass, charge, hydropathy, kappa and disorder of protein sequences",
		Example: "  molrun engine sequence-properties --fasta proteins.fasta --out properties",
		Args:    cobra.NoArgs,
	}
	c.Flags().StringVar(&fasta, "fasta", "", "FASTA file of proteins")
	c.Flags().Float64Var(&o.PH, "pH", 7.4, "pH of the net charge")
	c.Flags().IntVar(&o.Window, "window", 9, "residues that a profile is averaged over")
	c.Flags().StringVar(&out, "out", "", "folder for the results")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if fasta == "" || out == "" || o.Window < 1 {
			return usageError{errors.New("give --fasta FILE, --out DIR and a window of at least 1")}
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
