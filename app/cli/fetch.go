package cli

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"molrun/app/algorithm"
	"molrun/app/base/fault"
	"molrun/app/base/plaintext"
	"molrun/app/base/unit"
)

func fetchCommand() *cobra.Command {
	var onlyPrint bool
	c := &cobra.Command{
		Use:   "fetch TYPE...",
		Short: "Download the weights and other assets of algorithms",
		Long: `Download missing assets of algorithms, such as weights, to the folders that [site.paths] of
the configuration names. Programs can't download them while jobs run: the sandbox has no
network, and these folders are read-only. Assets that need a license are listed, for you
to get manually.

With --print, print shell commands instead of running them, to use on another machine. The
exit status is 1 if something is still missing.`,
		Example: "  molrun algorithms fetch boltz --print",
		Args:    cobra.MinimumNArgs(1),
	}
	flags := addConfigFlags(c, false)
	c.Flags().BoolVar(&onlyPrint, "print", false, "print the commands without running them")
	c.RunE = func(c *cobra.Command, types []string) error {
		catalogue, here, err := loadCatalogue(c, flags)
		if err != nil {
			return err
		}
		site, missing := here.Machine().Site, 0
		for _, typ := range types {
			a, ok := catalogue.Find(typ, "")
			if !ok {
				return fault.Errorf(fault.NotFound, "there is no algorithm %q on this server; `molrun algorithms list` shows them", typ)
			}
			places, err := a.AssetPlaces(site)
			if err != nil {
				return fault.Errorf(fault.Invalid, "%v", err)
			}
			script := fetchScript(a, places)
			if onlyPrint {
				fmt.Fprint(c.OutOrStdout(), script)
				continue
			}
			sh := exec.CommandContext(c.Context(), "sh", "-euxc", script)
			sh.Stdout, sh.Stderr = c.ErrOrStderr(), c.ErrOrStderr()
			ended := sh.Run()
			if ended != nil {
				return fmt.Errorf("fetch the assets of %s: %w", typ, ended)
			}
			places, _ = a.AssetPlaces(site)
			for _, p := range places {
				if p.Wrong != "" {
					fmt.Fprintln(c.ErrOrStderr(), "molrun:", p.Wrong)
					missing++
				}
			}
		}
		if missing > 0 {
			return silent{exitFailed}
		}
		return nil
	}
	return c
}

// fetchScript returns the shell commands that fetch the missing assets. One command can
// produce several assets.
func fetchScript(a *algorithm.File, places []algorithm.AssetPlace) string {
	text := &strings.Builder{}
	places = slices.DeleteFunc(places, func(p algorithm.AssetPlace) bool { return p.Wrong == "" })
	if len(places) == 0 {
		fmt.Fprintf(text, "# %s %s: nothing is missing\n", a.Type, a.Version)
	}
	var commands []string
	for _, p := range places {
		size := ""
		if p.Size > 0 {
			size = fmt.Sprintf(" (%s)", unit.Bytes(p.Size))
		}
		fmt.Fprintf(text, "# %s: %s%s, from %s\n", a.Type, p.Name, size, p.From)
		line := ""
		switch {
		case p.Address != "": // resumes a partial download; renamed once complete
			line = fmt.Sprintf("curl -fL --retry 5 --create-dirs -C - -o %s %s && mv %[1]s %[3]s", quoted(p.Path+".part"), quoted(p.Address), quoted(p.Path))
		case p.Command != nil:
			words := make([]string, len(p.Command))
			for i, word := range p.Command {
				words[i] = quoted(word)
			}
			line = strings.Join(words, " ")
		default:
			fmt.Fprintf(text, "# get it manually, and put it at %s\n", p.Path)
			continue
		}
		if !slices.Contains(commands, line) {
			fmt.Fprintln(text, line)
		}
		commands = append(commands, line)
	}
	return text.String()
}

// quoted quotes a word for a shell, if necessary.
func quoted(word string) string {
	plain := func(r rune) bool {
		return strings.ContainsRune("/._-+=:,@%", r) || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z'
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return plaintext.ShellWord(word)
}
