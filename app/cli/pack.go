package cli

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"molrun/app/algorithm"
	"molrun/app/algorithm/builtin"
	"molrun/app/algorithm/folder"
	"molrun/app/algorithm/pack"
	"molrun/app/base/fault"
	"molrun/app/cli/terminal"
	"molrun/app/server/config"
)

func packCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use: "pack TYPE|FOLDER", Short: "Put an algorithm and its assets into one archive",
		Long: `Put an algorithm (one on offer here, or a file or folder), its scripts and its assets, such as
weights and databases, into one tar archive for a site without a network. The archive has the
SHA-256 of each file. Container images in registries are not packed.`,
		Example: "  molrun algorithms pack vina -o vina.tar\n  molrun algorithms pack ./boltz -o boltz.tar",
		Args:    exactlyOne("the type of an algorithm, or its folder"),
	}
	flags := addConfigFlags(c, false)
	c.Flags().StringVarP(&out, "output", "o", "", "archive to write (default TYPE.tar)")
	c.RunE = func(c *cobra.Command, args []string) error {
		config, err := flags.load()
		if err != nil {
			return err
		}
		a, err := algorithmNamed(c, config, args[0])
		if err != nil {
			return err
		}
		if out == "" {
			out = a.Type + ".tar"
		}
		return packTo(c, config, a, out)
	}
	return c
}

// algorithmNamed returns an algorithm on offer, or that of a file or folder.
func algorithmNamed(c *cobra.Command, config config.Config, name string) (*algorithm.File, error) {
	if _, err := os.Stat(name); err == nil {
		a, mistakes, err := builtin.Read(name)
		for _, m := range mistakes {
			fmt.Fprintln(c.ErrOrStderr(), m)
		}
		if err == nil && len(mistakes) > 0 {
			err = silent{exitInvalid}
		}
		return a, err
	}
	catalogue, err := builtin.Catalogue(config.Algorithms, config.Catalogue, func(m algorithm.Mistake) { fmt.Fprintln(c.ErrOrStderr(), m) })
	if err != nil {
		return nil, err
	}
	a, ok := catalogue.Find(name, "")
	if !ok {
		return nil, fault.Errorf(fault.NotFound, "there is no algorithm %q here, nor a file of that name; molrun algorithms list shows them", name)
	}
	return a, nil
}

// packTo writes an archive, whole or not at all.
func packTo(c *cobra.Command, config config.Config, a *algorithm.File, out string) (err error) {
	parts, done, err := partsOf(a, config.Site.Paths)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	total, err := writePack(c.Context(), out, a.Type, parts)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s %s with %d assets, %s, is in %s\n", a.Type, a.Version, len(parts)-1, terminal.Size(total), out)
	if image := a.Sandbox.Image; image != "" && !filepath.IsAbs(image) {
		fmt.Fprintf(c.ErrOrStderr(), "its image %s is not in it: save it with the runtime of containers, and load it there\n", image)
	}
	_, err = fmt.Fprintln(c.OutOrStdout(), out)
	return err
}

// partsOf returns the parts of an archive, and what ends their use.
func partsOf(a *algorithm.File, site map[string]string) (parts []pack.Part, done func() error, err error) {
	done = func() error { return nil }
	if a.Folder != nil && a.Folder.Source() != nil {
		parts = []pack.Part{{Name: pack.Algorithm, From: a.Folder.Source(), Root: "."}}
	} else {
		dir, err := os.MkdirTemp("", "molrun-pack-")
		if err != nil {
			return nil, done, err
		}
		done = func() error { return os.RemoveAll(dir) }
		if err := os.WriteFile(filepath.Join(dir, folder.Main), a.Source, 0o600); err != nil {
			return nil, done, errors.Join(err, done())
		}
		parts = []pack.Part{{Name: pack.Algorithm, From: os.DirFS(dir), Root: "."}}
	}
	assets, err := a.AssetPlaces(site)
	if err != nil {
		return nil, done, errors.Join(err, done())
	}
	for _, asset := range assets {
		if _, err := os.Stat(asset.Path); err != nil {
			return nil, done, errors.Join(fmt.Errorf("the asset %s: %w", asset.Name, err), done())
		}
		parts = append(parts, pack.Part{Name: "assets/" + asset.Name, From: os.DirFS(filepath.Dir(asset.Path)), Root: filepath.Base(asset.Path)})
	}
	if image := a.Sandbox.Image; filepath.IsAbs(image) {
		parts = append(parts, pack.Part{Name: "assets/" + imageAsset, From: os.DirFS(filepath.Dir(image)), Root: filepath.Base(image)})
	}
	return parts, done, nil
}

// imageAsset is the name of the part that is a container image in a file.
const imageAsset = ".image"

func unpackCommand() *cobra.Command {
	var dir, assets string
	var replace bool
	c := &cobra.Command{
		Use: "unpack FILE", Short: "Take an algorithm and its assets out of an archive",
		Long: `Take an algorithm out of an archive that pack has made: its folder goes into the site's folder
of algorithms, its assets where [site.paths] says, or below --assets-dir. Nothing appears before
all files have arrived and are those that were packed. What is there already stays if it is the
same.`,
		Example: "  molrun algorithms unpack vina.tar --dir algorithms\n  molrun algorithms unpack boltz.tar --assets-dir /data/weights",
		Args:    exactlyOne("an archive of `molrun algorithms pack`"),
	}
	flags := addConfigFlags(c, false)
	c.Flags().StringVar(&dir, "dir", "", "folder of algorithms (default the setting algorithms)")
	c.Flags().StringVar(&assets, "assets-dir", "", "folder for assets of which [site.paths] says nothing")
	c.Flags().BoolVar(&replace, "force", false, "replace what is there with other content")
	c.RunE = func(c *cobra.Command, args []string) error {
		config, err := flags.load()
		if err != nil {
			return err
		}
		if dir == "" {
			dir = config.Algorithms
		}
		if dir == "" {
			return usageError{errors.New("say into which folder with --dir, or set algorithms in the configuration")}
		}
		f, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer f.Close() // only read from
		u := &unpacker{dir: dir, assets: assets, site: maps.Clone(config.Site.Paths)}
		placed, err := pack.Read(c.Context(), bufio.NewReaderSize(f, 1<<20), u.read, u.place, replace)
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return u.report(c, config, placed)
	}
	return c
}

// unpacker knows where the parts of an archive go.
type unpacker struct {
	dir, assets string
	site        map[string]string
	algorithm   *algorithm.File
	told        []string // names of [site.paths] that the configuration lacks
}

// read reads the algorithm, which has arrived in a folder.
func (u *unpacker) read(folder string) error {
	a, mistakes, err := builtin.Read(folder)
	if err != nil {
		return err
	}
	if len(mistakes) > 0 {
		return fault.Errorf(fault.Invalid, "the algorithm in the archive has a mistake in line %d: %s", mistakes[0].Line, mistakes[0].Msg)
	}
	u.algorithm = a
	if u.site == nil {
		u.site = map[string]string{}
	}
	for _, name := range a.SiteNames() {
		if u.site[name] != "" {
			continue
		}
		if u.assets == "" {
			return fault.Errorf(fault.Invalid, "[site.paths] has no %s; add it to the configuration, or say with --assets-dir where its assets may go", name)
		}
		path, err := filepath.Abs(filepath.Join(u.assets, name))
		if err != nil {
			return err
		}
		u.site[name] = path
		u.told = append(u.told, name)
	}
	return nil
}

// place says where a part goes.
func (u *unpacker) place(name, arrived string) (string, error) {
	if name == pack.Algorithm && arrived == "" {
		return filepath.Abs(filepath.Join(u.dir, "arriving")) // its type is not known yet
	}
	if name == pack.Algorithm {
		return filepath.Abs(filepath.Join(u.dir, u.algorithm.Type))
	}
	if name == "assets/"+imageAsset && filepath.IsAbs(u.algorithm.Sandbox.Image) {
		return u.algorithm.Sandbox.Image, nil
	}
	places, err := u.algorithm.AssetPlaces(u.site)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(places, func(p algorithm.AssetPlace) bool { return "assets/"+p.Name == name })
	if i < 0 {
		return "", fmt.Errorf("the archive has %s, which its algorithm does not name", name)
	}
	return places[i].Path, nil
}

// report says what is where, and what is still to be done.
func (u *unpacker) report(c *cobra.Command, config config.Config, placed []pack.Placed) error {
	w := c.ErrOrStderr()
	for _, p := range placed {
		state := "is in"
		if p.Already {
			state = "was there already:"
		}
		fmt.Fprintf(w, "%s %s %s\n", p.Name, state, p.Path)
	}
	if len(u.told) > 0 {
		fmt.Fprintln(w, "add to the configuration:\n\n[site.paths]")
		for _, name := range u.told {
			fmt.Fprintf(w, "%s = %q\n", name, u.site[name])
		}
		fmt.Fprintln(w)
	}
	if there, err := filepath.Abs(config.Algorithms); err != nil || config.Algorithms == "" || filepath.Dir(placed[0].Path) != there {
		fmt.Fprintf(w, "the setting algorithms must name %s\n", filepath.Dir(placed[0].Path))
	}
	_, err := fmt.Fprintf(c.OutOrStdout(), "%s\n", placed[0].Path)
	return err
}
