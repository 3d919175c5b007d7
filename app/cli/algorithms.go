package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/algorithm"
	"molrun/app/algorithm/builtin"
	"molrun/app/base/fault"
	"molrun/app/cli/remote"
	"molrun/app/client"
	"molrun/app/server/host"
)

func algorithmsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "algorithms", Short: "List algorithms; check and test algorithm files",
		Long: `List the algorithms of a service, or those that match all words. The commands below are for
administrators on the machine of the service: they read its configuration.`,
	}
	remote.SearchAlgorithms(c)
	c.AddCommand(algorithmsListCommand(), algorithmsShowCommand(), algorithmsCheckCommand(), fetchCommand(), algorithmsSchemaCommand(), algorithmsTestCommand(), newCommand(), reloadCommand())
	return c
}

func algorithmsListCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "list", Short: "List the algorithms on this machine and whether they are ready", Args: cobra.NoArgs}
	flags := addConfigFlags(c, false)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		catalogue, here, err := loadCatalogue(c, flags)
		if err != nil {
			return err
		}
		views := []algorithm.View{}
		var rows [][]string
		for _, typ := range catalogue.Types() {
			a, _ := catalogue.Find(typ, "")
			view := a.Summary(here.Missing(a), catalogue.VersionNames(typ))
			views = append(views, view)
			ready := "yes"
			if view.Status != "" {
				ready += " (" + view.Status + ")"
			}
			if !view.Ready {
				ready = "no: " + strings.Join(view.Missing, "; ")
			}
			rows = append(rows, []string{view.Type, view.Version, ready, view.Title})
		}
		if asJSON {
			return printJSON(c.OutOrStdout(), views)
		}
		return printTable(c.OutOrStdout(), []string{"TYPE", "VERSION", "READY", "TITLE"}, rows)
	}
	return c
}

// loadCatalogue loads the algorithms that a service with this configuration would offer.
func loadCatalogue(c *cobra.Command, flags *configFlags) (*algorithm.Catalogue, host.Host, error) {
	config, err := flags.loadConfig()
	if err != nil {
		return nil, host.Host{}, err
	}
	catalogue, err := builtin.Catalogue(config.Algorithms, config.Catalogue, func(m algorithm.Mistake) { fmt.Fprintln(c.ErrOrStderr(), m) })
	if err != nil {
		return nil, host.Host{}, err
	}
	here, _ := host.Inspect(config) // undetected hardware counts as absent
	return catalogue, here, nil
}

func algorithmsShowCommand() *cobra.Command {
	var version string
	var asJSON bool
	c := &cobra.Command{
		Use:     "show TYPE",
		Short:   "Show an algorithm and its settings",
		Example: "  molrun algorithms show cg-idp",
		Args:    exactlyOne("the type of an algorithm; `molrun algorithms list` shows them"),
	}
	flags := addConfigFlags(c, false)
	c.Flags().StringVar(&version, "version", "", "version (default: the version that jobs use)")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, including the JSON Schema of the settings")
	c.RunE = func(c *cobra.Command, args []string) error {
		catalogue, here, err := loadCatalogue(c, flags)
		if err != nil {
			return err
		}
		a, ok := catalogue.Find(args[0], version)
		if !ok {
			return fault.Errorf(fault.NotFound, "there is no algorithm %q %s on this server; `molrun algorithms list` shows them", args[0], version)
		}
		view := a.View(here.Missing(a), catalogue.VersionNames(a.Type))
		if asJSON {
			return printJSON(c.OutOrStdout(), view)
		}
		return showAlgorithm(c, a, view)
	}
	return c
}

func showAlgorithm(c *cobra.Command, a *algorithm.File, view algorithm.View) error {
	w := c.OutOrStdout()
	fmt.Fprintf(w, "%s %s: %s\n", a.Type, a.Version, a.Title)
	if a.Description != "" {
		fmt.Fprintln(w, a.Description)
	}
	if view.Status == algorithm.Untested {
		fmt.Fprintln(w, "untested: written from the program's documentation, not yet run with it")
	}
	for _, missing := range view.Missing {
		fmt.Fprintln(w, "not ready:", missing)
	}
	if view.Install != "" {
		fmt.Fprintln(w, "To install:", view.Install)
	}
	fmt.Fprintln(w)
	rows := make([][]string, len(a.Parameters))
	for i, p := range a.Parameters {
		value := string(p.Default)
		if p.Required {
			value = "required"
		}
		rows[i] = []string{p.Name, value, p.Unit, p.Title}
	}
	return printTable(w, []string{"SETTING", "DEFAULT", "UNIT", "TITLE"}, rows)
}

func algorithmsSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of algorithm files, for editors",
		Long: `Print the JSON Schema of algorithm files. Editors with a TOML language server (taplo, as
in Even Better TOML for Visual Studio Code) use it to complete keys and mark errors in files
that begin with #:schema and its path, as molrun algorithms new writes them.`,
		Example: "  molrun algorithms schema > algorithm.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(algorithm.FormatSchema)
			return err
		},
	}
}

func algorithmsCheckCommand() *cobra.Command {
	var full bool
	c := &cobra.Command{
		Use:   "check FILE|FOLDER...",
		Short: "Validate algorithm files",
		Long: `Report every error in algorithm files and folders, with its line, and whether their jobs can
run on this machine, or on the cluster that the configuration names. On this machine, run the probe of the file, or its version_command, for up to ten
seconds in a sandbox like that of its jobs, and name what is missing there. A folder of
algorithms, as in the configuration, is checked as a whole.

The exit status is 0 without errors, 1 if a program does not work in the sandbox, and 5 if
there are errors.`,
		Example: "  molrun algorithms check /etc/molrun/algorithms/*.toml",
		Args:    cobra.MinimumNArgs(1),
	}
	flags := addConfigFlags(c, false)
	c.Flags().BoolVar(&full, "full", false, "also verify the SHA-256 of all assets (slow)")
	c.RunE = func(c *cobra.Command, files []string) error {
		config, err := flags.loadConfig()
		if err != nil {
			return err
		}
		here, _ := host.Inspect(config) // undetected hardware counts as absent
		program, _ := os.Executable()
		wrong, broken := 0, 0
		for _, file := range expandFolders(files) {
			a, mistakes, err := builtin.ReadAlgorithm(file)
			if err != nil {
				return err
			}
			for _, m := range mistakes {
				fmt.Fprintln(c.ErrOrStderr(), m)
			}
			if wrong += len(mistakes); len(mistakes) > 0 {
				continue
			}
			missing := here.Missing(a)
			if full {
				missing = append(missing, a.DamagedAssets(c.Context(), config.Site.Paths)...)
			}
			if len(missing) == 0 {
				if err := here.Probe(c.Context(), a, program); err != nil {
					missing = append(missing, err.Error())
					broken++
				}
			}
			for _, text := range a.CommandWarnings() {
				fmt.Fprintf(c.ErrOrStderr(), "warning: %s: %s\n", file, text)
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: %s %s is valid%s\n", file, a.Type, a.Version, readiness(missing, here.RunsHere(a)))
			if len(missing) == 0 && here.RunsHere(a) {
				checkVersion(c, here, a)
			}
		}
		if wrong > 0 {
			fmt.Fprintln(c.ErrOrStderr(), "molrun:", mistakesText(wrong))
			return silent{exitInvalid}
		}
		if broken > 0 {
			return silent{exitFailed}
		}
		return nil
	}
	return c
}

// expandFolders replaces each folder in files with the algorithms in it.
func expandFolders(files []string) (all []string) {
	for _, file := range files {
		all = append(all, builtin.Within(file)...)
	}
	return all
}

// checkVersion warns if the installed program's version differs from the one that the
// file was written for.
func checkVersion(c *cobra.Command, here host.Host, a *algorithm.File) {
	program, _ := os.Executable()
	probe, ok := a.VersionProbe(program)
	if !ok {
		return
	}
	versions, end, err := here.Versions(c.Context())
	said := ""
	if err == nil {
		said, err = versions.Version(c.Context(), probe)
		err = errors.Join(err, end())
	}
	switch {
	case err != nil:
		fmt.Fprintf(c.ErrOrStderr(), "warning: %v\n", err)
	case said != a.Version && !strings.HasPrefix(said, a.Version+"."):
		fmt.Fprintf(c.ErrOrStderr(), "warning: %s reports version %s, but %s was written for %s\n", filepath.Base(probe.Argv[0]), said, a.Type, a.Version)
	}
}

func mistakesText(n int) string {
	if n == 1 {
		return "1 error"
	}
	return strconv.Itoa(n) + " errors"
}

// readiness describes whether jobs can run here or, if here is false, on the cluster.
func readiness(missing []string, here bool) string {
	switch {
	case len(missing) == 0 && here:
		return " and ready on this machine"
	case len(missing) == 0:
		return " and ready for the cluster, whose nodes were not checked"
	}
	return "; not ready on this machine: " + strings.Join(missing, "; ")
}

func reloadCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "reload",
		Short: "Reload the algorithm files of the running service",
		Long: `Reload the algorithm files of the running service, as SIGHUP does. Submitted jobs keep the
version they were submitted with. A file with an error is reported with the line, and its
previous content stays in use.

Exits with 5 if there are errors.`,
		Example: "  molrun algorithms reload",
		Args:    cobra.NoArgs,
	}
	flags := addConfigFlags(c, false)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := flags.existing(c)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
		defer cancel()
		if !host.Running(ctx, config.Data) {
			return fault.Errorf(fault.NotFound, "no service is running on %s; it will load the algorithm files at startup", config.Data)
		}
		read, err := host.Control(config.Data).ReloadAlgorithms(ctx)
		switch {
		case err != nil:
			return err
		case asJSON:
			err = printJSON(c.OutOrStdout(), read)
		default:
			err = printRead(c.OutOrStdout(), read)
		}
		if err == nil && len(read.Mistakes) > 0 {
			err = silent{exitInvalid}
		}
		return err
	}
	return c
}

func printRead(w io.Writer, read *client.AlgorithmsRead) error {
	for _, change := range []struct {
		what  string
		names []string
	}{{"added", read.Added}, {"changed", read.Changed}, {"removed", read.Removed}} {
		if len(change.names) > 0 {
			fmt.Fprintf(w, "%s: %s\n", change.what, strings.Join(change.names, ", "))
		}
	}
	for _, m := range read.Mistakes {
		kept := "left out"
		if m.Kept != "" {
			kept = m.Kept + " stays as it was"
		}
		fmt.Fprintf(w, "%s:%d: %s (%s)\n", m.File, m.Line, m.Message, kept)
	}
	if len(read.Added)+len(read.Changed)+len(read.Removed) == 0 {
		fmt.Fprintln(w, "no algorithm has changed")
	}
	return nil
}
