package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"molrun/app/engine/cgidp"
)

func engineCommand() *cobra.Command {
	c := &cobra.Command{Use: "engine", Short: "Run a built-in engine by hand"}
	c.AddCommand(cgidpCommand())
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
		fasta, err := f.readFASTA()
		if err != nil {
			return err
		}
		if f.validate {
			return validateSettings(c.InOrStdin(), c.OutOrStdout(), fasta)
		}
		return f.simulate(c, fasta)
	}
	return c
}

// readFASTA returns the text of the file, nil if no file is named. Of a file that is
// too long it returns enough for Parse to notice.
func (f *cgidpFlags) readFASTA() ([]byte, error) {
	if f.fasta == "" {
		return nil, nil
	}
	file, err := os.Open(f.fasta)
	if err != nil {
		return nil, fmt.Errorf("read the FASTA file: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, cgidp.MaxFASTA+1))
	if text == nil {
		text = []byte{} // an empty file is still a file
	}
	return text, err
}

// validateSettings writes the faults of each settings document of r.
func validateSettings(r io.Reader, w io.Writer, fasta []byte) error {
	documents := json.NewDecoder(r)
	answers := json.NewEncoder(w)
	for {
		var settings json.RawMessage
		err := documents.Decode(&settings)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read settings: %w", err)
		}
		_, faults := cgidp.Parse(settings, fasta)
		if faults == nil {
			faults = []cgidp.Fault{}
		}
		if err := answers.Encode(faults); err != nil {
			return err
		}
	}
}

func (f *cgidpFlags) simulate(c *cobra.Command, fasta []byte) error {
	if f.settings == "" || f.out == "" {
		return usageError{errors.New("give --settings FILE and --out DIR")}
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
