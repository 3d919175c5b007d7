package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"molrun/app/algorithm/builtin"
)

func newCommand() *cobra.Command {
	var typ, dir string
	c := &cobra.Command{
		Use: "new PROGRAM", Short: "Write the commented skeleton of an algorithm for a program",
		Long: `Write the folder of an algorithm for a program: a file with comments on what to fill in, and an
example beside it. It is correct as it is: molrun algorithms check and test take it. If the
program is installed, it is asked for its version.`,
		Example: "  molrun algorithms new wc --type count-words --dir algorithms\n  molrun algorithms check algorithms/count-words",
		Args:    exactlyOne("the name of a program"),
	}
	flags := addConfigFlags(c, false)
	c.Flags().StringVar(&typ, "type", "", "type of the algorithm (default after the program)")
	c.Flags().StringVar(&dir, "dir", "", "folder to write to (default the setting algorithms, or this folder)")
	c.RunE = func(c *cobra.Command, args []string) error {
		config, err := flags.loadConfig()
		if err != nil {
			return err
		}
		if dir == "" {
			dir = config.Algorithms
		}
		if dir == "" {
			dir = "."
		}
		s, err := builtin.NewSkeleton(c.Context(), args[0], typ)
		if err != nil {
			return err
		}
		path, err := s.Write(dir)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.ErrOrStderr(), "fill in %s/algorithm.toml; molrun algorithms check %[1]s reports mistakes, molrun algorithms test %[1]s runs the example\n", path)
		_, err = fmt.Fprintln(c.OutOrStdout(), path)
		return err
	}
	return c
}
