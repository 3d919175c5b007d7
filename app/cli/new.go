package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"molrun/app/algorithm/builtin"
)

func newCommand() *cobra.Command {
	var typ, dir string
	c := &cobra.Command{
		Use: "new PROGRAM", Short: "Create an algorithm file for a program",
		Long: `Create a folder with a commented algorithm file for a program and an example. It is valid as
it is: try molrun algorithms check and test. The version is read from the program if it is
installed.`,
		Example: "  molrun algorithms new wc --type count-words --dir algorithms\n  molrun algorithms check algorithms/count-words",
		Args:    exactlyOne("the name of a program"),
	}
	flags := addConfigFlags(c, false)
	c.Flags().StringVar(&typ, "type", "", "type of the algorithm (default: named after the program)")
	c.Flags().StringVar(&dir, "dir", "", "folder to write to (default: the setting algorithms, or the current folder)")
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
		fmt.Fprintf(c.ErrOrStderr(), "fill in %s/algorithm.toml; molrun algorithms check %[1]s reports errors, molrun algorithms test %[1]s runs the example\n", path)
		_, err = fmt.Fprintln(c.OutOrStdout(), path)
		return err
	}
	return c
}
