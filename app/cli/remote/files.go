package remote

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/base/naming"
	"molrun/app/cli/terminal"
	"molrun/app/client"
)

func filesCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "files", Short: "List, upload, download and delete input files",
		Example: Examples("molrun files ls", "molrun files put model.pdb models/*.pdb --folder screen"),
	}
	c.AddCommand(listFilesCommand(), putCommand(), getCommand(), removeFilesCommand())
	return c
}

func listFilesCommand() *cobra.Command {
	var organization bool
	c := &cobra.Command{
		Use: "ls [FOLDER|PATTERN...]", Short: "List uploaded files, newest first",
		Example: Examples("molrun files ls", "molrun files ls 'inputs/*.pdb' --json"),
	}
	c.Flags().BoolVar(&organization, "organization", false, "include other users' entries")
	return withSession(c, func(ctx context.Context, s *session, args []string) error {
		found, err := findUploads(ctx, s, args, organization)
		if err != nil {
			return err
		}
		if s.JSON {
			answers := make([]client.Answer, len(found))
			for i, f := range found {
				answers[i] = f.answer
			}
			return s.PrintJSON(map[string]any{"files": answers})
		}
		now := time.Now()
		lines := make([][]string, len(found))
		for i, f := range found {
			state := ""
			if f.Status != "completed" {
				state = "not complete"
			}
			lines[i] = []string{terminal.Size(f.Size), terminal.Ago(f.UploadedAt, now), f.Folder + "/" + f.Filename, state}
		}
		return s.Table([]terminal.Column{{Title: "SIZE", Right: true}, {Title: "UPLOADED", Right: true}, {Title: "FILE", MinWidth: 20}, {Title: "STATE", MinWidth: 5}}, lines)
	})
}

// found is an upload with the service's JSON for it.
type found struct {
	*client.File
	answer client.Answer
}

// findUploads returns the uploads that the IDs, names, folders and patterns in wanted
// select, or all uploads if wanted is empty.
func findUploads(ctx context.Context, s *session, wanted []string, organization bool) (list []found, err error) {
	for _, w := range wanted {
		if _, err := path.Match(w, ""); err != nil {
			return nil, Usagef("%q is not a valid pattern: %w", w, err)
		}
	}
	q := url.Values{}
	if organization {
		q.Set("organization", "true")
	}
	if len(wanted) == 1 && !strings.ContainsAny(wanted[0], "*?[") && strings.HasSuffix(wanted[0], "/") {
		q.Set("folder", strings.TrimSuffix(wanted[0], "/"))
	}
	_, err = eachPage(ctx, s, "files", q, 0, func(a client.Answer) error {
		f, err := client.Decode[client.File](a)
		if err == nil && selects(wanted, f) {
			list = append(list, found{f, a})
		}
		return err
	})
	return list, err
}

// selects reports whether any ID, name, folder or pattern in wanted matches f.
func selects(wanted []string, f *client.File) bool {
	if len(wanted) == 0 {
		return true
	}
	full := f.Folder + "/" + f.Filename
	for _, w := range wanted {
		w = naming.Composed(strings.TrimSuffix(w, "/"))
		if matched, _ := path.Match(w, full); matched || w == f.ID || w == f.Folder || strings.HasPrefix(full, w+"/") {
			return true
		}
	}
	return false
}

func putCommand() *cobra.Command {
	var folder string
	var ifChanged bool
	c := &cobra.Command{
		Use: "put FILE|FOLDER...", Short: "Upload files",
		Long: `Upload files and folders. An interrupted upload resumes where it stopped. With --if-changed,
files that the service already has under the same name with the same content are skipped.`,
		Example: Examples("molrun files put model.pdb", "molrun files put models/ --folder screen/models"),
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return Usagef("%s requires files or folders", c.CommandPath())
			}
			return nil
		},
	}
	c.Flags().StringVar(&folder, "folder", "", "folder on the service (default inputs)")
	c.Flags().BoolVar(&ifChanged, "if-changed", false, "upload only files whose content differs from the service's")
	return withSession(c, func(ctx context.Context, s *session, args []string) error {
		groups, err := locals(args, folder)
		if err != nil {
			return Usage(err)
		}
		var all []sentFile
		for _, g := range groups {
			sent, err := s.PutFiles(ctx, g.paths, g.folder, ifChanged)
			if err != nil {
				return err
			}
			all = append(all, sent...)
		}
		if s.JSON {
			return s.PrintJSON(map[string]any{"files": all})
		}
		for _, f := range all {
			if err := s.Print("%s/%s", terminal.Clean(f.Folder), terminal.Clean(f.Filename)); err != nil {
				return err
			}
		}
		return nil
	})
}

// group is a set of local files to upload to one folder.
type group struct {
	folder string
	paths  []string
}

// locals expands arguments to files, grouped by target folder. Files in a folder keep
// their relative paths.
func locals(args []string, folder string) (groups []group, err error) {
	for _, arg := range args {
		err := filepath.WalkDir(arg, func(name string, entry fs.DirEntry, err error) error {
			hidden := strings.HasPrefix(entry.Name(), ".") && name != arg
			switch {
			case err != nil:
				return err
			case hidden && entry.IsDir():
				return fs.SkipDir
			case hidden || entry.IsDir():
				return nil
			}
			groups = addToGroup(groups, folderOf(arg, name, folder), name)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(groups) == 0 {
		return nil, fmt.Errorf("there is no file in %s", strings.Join(args, ", "))
	}
	return groups, nil
}

func folderOf(arg, name, folder string) string {
	below, err := filepath.Rel(arg, filepath.Dir(name))
	if err != nil || below == "." || strings.HasPrefix(below, "..") {
		return folder
	}
	return path.Join(cmp.Or(folder, "inputs"), filepath.ToSlash(below))
}

func addToGroup(groups []group, folder, name string) []group {
	for i := range groups {
		if groups[i].folder == folder {
			groups[i].paths = append(groups[i].paths, name)
			return groups
		}
	}
	return append(groups, group{folder, []string{name}})
}

func getCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use: "get NAME|PATTERN...", Short: "Download uploaded files", Args: cobra.MinimumNArgs(1),
		Example: Examples("molrun files get inputs/model.pdb", "molrun files get 'screen/*.pdb' --download out"),
	}
	c.Flags().StringVar(&dir, "download", ".", "folder to write to")
	return withSession(c, func(ctx context.Context, s *session, args []string) error {
		list, err := findUploads(ctx, s, args, false)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return &client.Error{Status: 404, Code: "NOT_FOUND", Message: "you have no upload with this name; molrun files ls lists your uploads"}
		}
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
		for _, f := range list {
			target := filepath.Join(dir, filepath.Base(f.Filename))
			if err := fetch(ctx, s, f.File, target); err != nil {
				return err
			}
			if err := s.Print("%s", terminal.Clean(target)); err != nil {
				return err
			}
		}
		return nil
	})
}

// fetch downloads an upload to target and shows its progress.
func fetch(ctx context.Context, s *session, f *client.File, target string) error {
	bars := s.NewBars()
	defer bars.Close()
	t := bars.Bytes(f.Filename, f.Size)
	return s.API.FetchUpload(ctx, f, target, func(done, _ int64) { t.At(done) })
}

func removeFilesCommand() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "rm NAME|PATTERN...", Short: "Delete uploaded files", Args: cobra.MinimumNArgs(1),
		Example: Examples("molrun files rm inputs/model.pdb", "molrun files rm 'screen/*' --yes"),
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return withSession(c, func(ctx context.Context, s *session, args []string) error {
		list, err := findUploads(ctx, s, args, false)
		if err != nil {
			return err
		}
		chosen, ids := make([]string, len(list)), map[string]string{}
		for i, f := range list {
			chosen[i] = f.Folder + "/" + f.Filename
			ids[chosen[i]] = f.ID
		}
		if len(chosen) == 0 {
			return &client.Error{Status: 404, Code: "NOT_FOUND", Message: "you have no upload with this name; molrun files ls lists your uploads"}
		}
		if len(chosen) > 1 && !yes {
			if err := confirm(c, fmt.Sprintf("delete %d files: %s?", len(chosen), sample(chosen))); err != nil {
				return err
			}
		}
		return changeEach(ctx, s, "file", chosen, "deleted", func(ctx context.Context, s *session, name string) error {
			if err := s.API.DeleteFile(ctx, ids[name]); err != nil && !isNotFound(err) {
				return err
			}
			return nil
		})
	})
}
