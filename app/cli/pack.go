package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"molrun/app/algorithm"
	"molrun/app/algorithm/builtin"
	"molrun/app/algorithm/folder"
	"molrun/app/base/durable"
	"molrun/app/base/fault"
	"molrun/app/base/unit"
	"molrun/app/cli/terminal"
	"molrun/app/server/config"
	"molrun/app/task/process"
)

// Names in a site archive, and in the folder where it is unpacked.
const (
	siteProgram    = "molrun"
	siteAlgorithms = "algorithms"
	siteAssets     = "assets"
	siteImages     = "images"
	siteSettings   = "site.toml" // created when unpacking
)

func packCommand() *cobra.Command {
	var out string
	var images []string
	c := &cobra.Command{
		Use: "pack [TYPE...]", Short: "Pack molrun, algorithms, weights and images for an offline machine",
		Long: `Pack this program, algorithms (types, files or folders), their weights and databases, and
container images into one tar archive, for a machine without a network. The archive contains the
SHA-256 of each file. Programs of algorithms are packed only as container images.`,
		Example: "  molrun pack vina boltz -o site.tar\n  molrun pack colabfold --image localhost/colabfold:1.5.5 -o site.tar",
	}
	flags := addConfigFlags(c, false)
	c.Flags().StringVarP(&out, "output", "o", "site.tar", "archive to write")
	c.Flags().StringArrayVar(&images, "image", nil, "container image, by name; repeat for several")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		config, err := flags.loadConfig()
		if err != nil {
			return err
		}
		s := &packing{config: config}
		defer func() { err = errors.Join(err, s.close()) }()
		if err := s.gather(c, args, images, filepath.Dir(out)); err != nil {
			return err
		}
		total, err := writePack(c.Context(), out, s.parts)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.ErrOrStderr(), "%s with %s and %s, %s; unpack it there with: tar -xf %[5]s molrun && ./molrun unpack %[5]s FOLDER\n",
			out, unit.Count(len(s.types), "algorithm"), unit.Count(len(images), "image"), terminal.Size(total), filepath.Base(out))
		_, err = fmt.Fprintln(c.OutOrStdout(), out)
		return err
	}
	return c
}

// algorithmNamed returns an algorithm by its type, or reads it from a file or folder.
func algorithmNamed(c *cobra.Command, config config.Config, name string) (*algorithm.File, error) {
	if _, err := os.Stat(name); err == nil {
		a, mistakes, err := builtin.ReadAlgorithm(name)
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
		return nil, fault.Errorf(fault.NotFound, "there is no algorithm or file named %q; molrun algorithms list shows the algorithms", name)
	}
	return a, nil
}

// packing collects the contents of a site archive.
type packing struct {
	config config.Config
	parts  []folder.Part
	types  []string
	done   []func() error
}

func (s *packing) close() error {
	var errs []error
	for _, f := range s.done {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

func (s *packing) gather(c *cobra.Command, names, images []string, scratch string) error {
	program, err := os.Readlink(process.Self)
	if err != nil {
		return err
	}
	s.parts = append(s.parts, folder.Part{Name: siteProgram, From: os.DirFS(filepath.Dir(program)), Root: filepath.Base(program)})
	for _, name := range names {
		a, err := algorithmNamed(c, s.config, name)
		if err != nil {
			return err
		}
		if err := s.addAlgorithm(c, a); err != nil {
			return fmt.Errorf("%s: %w", a.Type, err)
		}
	}
	for _, image := range images {
		if err := s.addImage(c.Context(), image, scratch); err != nil {
			return err
		}
	}
	return nil
}

// addAlgorithm adds an algorithm's folder and the assets whose paths depend on
// [site.paths]. The assets of all algorithms go into one folder. For assets at fixed
// paths, it only prints a note.
func (s *packing) addAlgorithm(c *cobra.Command, a *algorithm.File) error {
	if slices.Contains(s.types, a.Type) {
		return fault.Errorf(fault.Invalid, "it is listed twice")
	}
	s.types = append(s.types, a.Type)
	from, err := s.folderOf(a)
	if err != nil {
		return err
	}
	s.parts = append(s.parts, folder.Part{Name: path.Join(siteAlgorithms, a.Type), From: from, Root: "."})
	here, err := a.AssetPlaces(s.config.Site.Paths)
	if err != nil {
		return err
	}
	sites := map[string]string{}
	for _, name := range a.SiteNames() {
		sites[name] = "/" + path.Join(siteAssets, name)
	}
	there, err := a.AssetPlaces(sites)
	if err != nil {
		return err
	}
	for i, asset := range here {
		name, movable := strings.CutPrefix(there[i].Path, "/"+siteAssets+"/")
		if !movable {
			fmt.Fprintf(c.ErrOrStderr(), "%s: its asset %s is not packed; the other machine must have it at %s\n", a.Type, asset.Name, asset.Path)
			continue
		}
		if _, err := os.Stat(asset.Path); err != nil {
			return fmt.Errorf("the asset %s: %w", asset.Name, err)
		}
		name = path.Join(siteAssets, name)
		if slices.ContainsFunc(s.parts, func(other folder.Part) bool { return other.Name == name }) {
			continue // shared with another algorithm
		}
		s.parts = append(s.parts, folder.Part{Name: name, From: os.DirFS(filepath.Dir(asset.Path)), Root: filepath.Base(asset.Path)})
	}
	if image := a.Sandbox.Image; filepath.IsAbs(image) {
		fmt.Fprintf(c.ErrOrStderr(), "%s: its image is not packed; the other machine must have it at %s\n", a.Type, image)
	}
	return nil
}

// folderOf returns the folder of an algorithm. For a single-file algorithm, it creates
// one.
func (s *packing) folderOf(a *algorithm.File) (fs.FS, error) {
	if a.Folder != nil && a.Folder.Source() != nil {
		return a.Folder.Source(), nil
	}
	dir, err := os.MkdirTemp("", "molrun-pack-")
	if err != nil {
		return nil, err
	}
	s.done = append(s.done, func() error { return os.RemoveAll(dir) })
	return os.DirFS(dir), os.WriteFile(filepath.Join(dir, folder.Main), a.Source, 0o600)
}

// addImage saves an image with the container runtime and adds it.
func (s *packing) addImage(ctx context.Context, image, scratch string) error {
	dir, err := os.MkdirTemp(scratch, ".molrun-pack-")
	if err != nil {
		return err
	}
	s.done = append(s.done, func() error { return os.RemoveAll(dir) })
	runtime := s.config.Containers.Runtime
	if runtime == "auto" {
		runtime = "podman"
	}
	file := regexp.MustCompile(`[^A-Za-z0-9._-]+`).ReplaceAllString(image, "-") + ".tar"
	if out, err := exec.CommandContext(ctx, runtime, "save", "-o", filepath.Join(dir, file), image).CombinedOutput(); err != nil {
		return fmt.Errorf("save the image %s with %s: %w: %s", image, runtime, err, strings.TrimSpace(string(out)))
	}
	s.parts = append(s.parts, folder.Part{Name: path.Join(siteImages, file), From: os.DirFS(dir), Root: file})
	return nil
}

// writePack writes the archive atomically.
func writePack(ctx context.Context, out string, parts []folder.Part) (total int64, err error) {
	f, err := os.CreateTemp(filepath.Dir(out), ".molrun-pack-")
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	total, err = folder.WriteArchive(ctx, w, parts)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), out)
	}
	if err != nil {
		return 0, errors.Join(err, os.Remove(f.Name()))
	}
	return total, nil
}

func unpackCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "unpack FILE FOLDER", Short: "Unpack an archive made by molrun pack",
		Long: `Unpack an archive made by molrun pack into a new folder, which appears only after all files
have been verified, and print what to do next.`,
		Example: "  molrun unpack site.tar /opt/molrun",
		Args:    cobra.ExactArgs(2),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		f, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer f.Close() // read-only
		if err := folder.Unpack(c.Context(), bufio.NewReaderSize(f, 1<<20), args[1]); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		dir, err := filepath.Abs(args[1])
		if err != nil {
			return err
		}
		return writeSettings(c, dir)
	}
	return c
}

// writeSettings writes the settings for the unpacked site and prints the next steps.
func writeSettings(c *cobra.Command, dir string) error {
	folders, err := filepath.Glob(filepath.Join(dir, siteAlgorithms, "*"))
	if err != nil {
		return err
	}
	paths := map[string]string{}
	for _, folder := range folders {
		a, mistakes, err := builtin.ReadAlgorithm(folder)
		if err == nil && len(mistakes) > 0 {
			err = fmt.Errorf("line %d: %s", mistakes[0].Line, mistakes[0].Msg)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
		for _, name := range a.SiteNames() {
			paths[name] = filepath.Join(dir, siteAssets, name)
		}
	}
	text := fmt.Sprintf("# Created by molrun unpack. Add any other settings for this machine; config.example.toml lists them all.\nalgorithms = %q\n", filepath.Join(dir, siteAlgorithms))
	if len(paths) > 0 {
		text += "\n[site.paths]\n"
		for _, name := range slices.Sorted(maps.Keys(paths)) {
			text += fmt.Sprintf("%s = %q\n", name, paths[name])
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	if err := errors.Join(durable.Replace(root, siteSettings, []byte(text)), root.Close()); err != nil {
		return err
	}
	return printNextSteps(c.OutOrStdout(), dir, filepath.Join(dir, siteSettings))
}

// printNextSteps prints the commands to run next.
func printNextSteps(w io.Writer, dir, settings string) error {
	images, err := filepath.Glob(filepath.Join(dir, siteImages, "*"))
	if err != nil {
		return err
	}
	for _, image := range images {
		if _, err := fmt.Fprintf(w, "podman load -i %s\n", image); err != nil {
			return err
		}
	}
	program := filepath.Join(dir, siteProgram)
	_, err = fmt.Fprintf(w, "%s doctor --config %s\n%s serve --config %[2]s --init --data DIRECTORY\n", program, settings, program)
	return err
}
