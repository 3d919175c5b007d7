package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"molrun/app/base/durable"
	"molrun/app/base/structure"
	"molrun/app/cli/remote"
	"molrun/app/engine/structsum"
)

func summaryCommand() *cobra.Command {
	var file, out string
	var cutoff float64
	c := &cobra.Command{
		Use:     "structure-summary",
		Short:   "Summarize a structure",
		Example: "  molrun engine structure-summary --structure 1abc.cif --out summary",
		Args:    cobra.NoArgs,
	}
	c.Flags().StringVar(&file, "structure", "", "PDB or mmCIF file")
	c.Flags().Float64Var(&cutoff, "cutoff", 4.5, "distance cutoff for contacts between heavy atoms, in Å")
	c.Flags().StringVar(&out, "out", "", "folder for the results")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if file == "" || out == "" || !(cutoff > 0) {
			return remote.Usagef("specify --structure FILE, --out DIR and a cutoff above 0")
		}
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close() // read-only
		if err := os.MkdirAll(out, 0o755); err != nil {
			return err
		}
		return structsum.Run(c.Context(), f, cutoff, out, c.OutOrStdout())
	}
	return c
}

func pdbCommand() *cobra.Command {
	var file, out string
	var leave structure.Selection
	c := &cobra.Command{
		Use:   "pdb",
		Short: "Convert a structure to a plain PDB file",
		Long: `Write the first model of a PDB or mmCIF file as a PDB file with a header, the most occupied
position of each atom and one-letter chain names, and print what was changed. --standard and
--no-hetero write modified residues as their standard parents, such as selenomethionine as
methionine. With --no-hetero, a structure with other HETATM residues inside its chains is
rejected.`,
		Example: "  molrun engine pdb --structure 1abc.cif --no-hetero --out protein.pdb",
		Args:    cobra.NoArgs,
	}
	c.Flags().StringVar(&file, "structure", "", "PDB or mmCIF file")
	c.Flags().BoolVar(leave.Option("no-hetero"), "no-hetero", false, "leave out ligands, ions and waters; write modified residues of chains as standard ones")
	c.Flags().BoolVar(leave.Option("standard"), "standard", false, "write modified residues of chains as their standard parents")
	c.Flags().BoolVar(leave.Option("no-hydrogens"), "no-hydrogens", false, "leave out hydrogens")
	c.Flags().StringVar(&out, "out", "", "file to write")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if file == "" || out == "" {
			return remote.Usagef("specify --structure FILE and --out FILE")
		}
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close() // read-only
		var text bytes.Buffer
		w, err := structure.WritePDB(f, &text, leave)
		if err != nil {
			return fmt.Errorf("the structure %w", err)
		}
		fmt.Fprintf(c.OutOrStdout(), "The structure has %s.\n", w.Source)
		if len(w.Modified) > 0 {
			fmt.Fprintf(c.OutOrStdout(), "Modified residues are written as standard ones: %s.\n", strings.Join(w.Modified, ", "))
		}
		if len(w.Unusual) > 0 {
			fmt.Fprintf(c.OutOrStdout(), "These residues in chains have no standard parent residue, and programs may omit them: %s.\n", strings.Join(w.Unusual, ", "))
		}
		if w.Again {
			fmt.Fprintln(c.OutOrStdout(), "Water numbering restarts at 0 after 9999.")
		}
		for _, from := range slices.Sorted(maps.Keys(w.Chains)) {
			fmt.Fprintf(c.OutOrStdout(), "Chain %s was renamed %s.\n", cmp.Or(from, "without a name"), w.Chains[from])
		}
		root, err := os.OpenRoot(filepath.Dir(out))
		if err != nil {
			return err
		}
		defer root.Close() // read-only handle of the folder
		return durable.Replace(root, filepath.Base(out), text.Bytes())
	}
	return c
}
