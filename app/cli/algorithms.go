package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"molrun/app/algorithm"
	"molrun/app/algorithms"
	"molrun/app/config"
	"molrun/app/fault"
	"molrun/app/host"
	"molrun/app/placement"
)

func algorithmsCommand() *cobra.Command {
	c := &cobra.Command{Use: "algorithms", Short: "Show what this service can run, check algorithm files"}
	c.AddCommand(algorithmsListCommand(), algorithmsShowCommand(), algorithmsCheckCommand())
	return c
}

func algorithmsListCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "list", Short: "List the algorithms and whether they are ready here", Args: cobra.NoArgs}
	flags := addConfigFlags(c, false)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		catalogue, here, err := catalogueHere(c, flags)
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

// catalogueHere loads the algorithms that the service would offer with this
// configuration.
func catalogueHere(c *cobra.Command, flags *configFlags) (*algorithm.Catalogue, host.Host, error) {
	config, err := flags.load()
	if err != nil {
		return nil, host.Host{}, err
	}
	catalogue, err := algorithms.Catalogue(config.Algorithms, func(m algorithm.Mistake) { fmt.Fprintln(c.ErrOrStderr(), m) })
	if err != nil {
		return nil, host.Host{}, err
	}
	here, _ := host.Of(config) // what was not detected counts as absent
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
	c.Flags().StringVar(&version, "version", "", "version (default the one that jobs take)")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the JSON Schema of the settings")
	c.RunE = func(c *cobra.Command, args []string) error {
		catalogue, here, err := catalogueHere(c, flags)
		if err != nil {
			return err
		}
		a, ok := catalogue.Find(args[0], version)
		if !ok {
			return fault.Errorf(fault.NotFound, "there is no algorithm %q %s here; `molrun algorithms list` shows them", args[0], version)
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
	for _, missing := range view.Missing {
		fmt.Fprintln(w, "not ready:", missing)
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

func algorithmsCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "check FILE...",
		Short:   "Report every mistake in algorithm files, with its line",
		Example: "  molrun algorithms check /etc/molrun/algorithms/*.toml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, files []string) error {
			here, _ := host.Of(config.Default()) // what was not detected counts as absent
			wrong := 0
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				a, mistakes := algorithm.Parse(file, text)
				for _, m := range mistakes {
					fmt.Fprintln(c.ErrOrStderr(), m)
				}
				if wrong += len(mistakes); len(mistakes) == 0 {
					fmt.Fprintf(c.OutOrStdout(), "%s: %s %s is correct%s\n", file, a.Type, a.Version, notReady(a, here.Machine()))
				}
			}
			if wrong > 0 {
				fmt.Fprintln(c.ErrOrStderr(), "molrun:", mistakesText(wrong))
				return silent{exitInvalid}
			}
			return nil
		},
	}
}

func mistakesText(n int) string {
	if n == 1 {
		return "1 mistake"
	}
	return strconv.Itoa(n) + " mistakes"
}

func notReady(a *algorithm.File, machine placement.Machine) string {
	missing := a.Missing(machine)
	if len(missing) == 0 {
		return " and ready on this machine"
	}
	return "; not ready on this machine: " + strings.Join(missing, "; ")
}
