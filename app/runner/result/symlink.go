package result

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"molrun/app/task"
)

// stagingDir, in the job's directory, is where replacements of links are prepared.
const stagingDir = "links"

// maxLinks bounds the length of a chain of links.
const maxLinks = 40

// Reasons why a link is left out.
const (
	linkMissing = "a link to a missing file"
	linkOutside = "a link out of the output folder"
	linkLoop    = "a link to itself or to a parent folder"
	linkLarge   = "a link to a folder with too many files or levels to copy"
)

// outputPaths returns the absolute paths under which a program saw its output folder, to
// resolve absolute links.
func outputPaths(attemptDir string) []string {
	work := filepath.Join(attemptDir, task.WorkDir)
	paths := []string{filepath.Join(work, task.OutDir)}
	if real, err := filepath.EvalSymlinks(work); err == nil && real != work {
		paths = append(paths, filepath.Join(real, task.OutDir))
	}
	return paths
}

// symlinks replaces symbolic links in a result with hard links to their targets within
// it, so that nothing is stored twice.
type symlinks struct {
	*inspection
	job      *os.Root
	outPaths []string        // paths of the result as the program saw them
	known    map[string]bool // files of the result
}

// resolveSymlinks resolves the links that stay within the result, and leaves out the
// others.
func (i *inspection) resolveSymlinks(jobDir string, outs []string) error {
	if len(i.links) == 0 {
		return nil
	}
	job, err := os.OpenRoot(jobDir)
	if err != nil {
		return err
	}
	defer job.Close()
	if err := errors.Join(job.RemoveAll(stagingDir), job.Mkdir(stagingDir, 0o700)); err != nil {
		return err
	}
	s := symlinks{i, job, outs, make(map[string]bool, len(i.files))}
	for _, f := range i.files {
		s.known[f] = true
	}
	for n, link := range i.links {
		why, err := s.copyTarget(link, staged(n))
		if err != nil {
			return err
		}
		if why != "" {
			i.leaveOut(link, why)
		}
	}
	return errors.Join(s.replaceLinks(), job.RemoveAll(stagingDir))
}

// staged returns the path where the replacement of a link is prepared.
func staged(n int) string { return filepath.Join(stagingDir, strconv.Itoa(n)) }

// replaceLinks moves the prepared replacements to their links' paths.
func (s *symlinks) replaceLinks() error {
	for n, link := range s.links {
		if s.left[link] != "" {
			continue
		}
		place := filepath.Join(resultDir, link)
		if err := s.job.Remove(place); err != nil { // a folder can't be renamed over a link
			return err
		}
		if err := s.job.Rename(staged(n), place); err != nil {
			return err
		}
	}
	return nil
}

// copyTarget copies the target of a link, or returns why it can't be copied.
func (s *symlinks) copyTarget(link, to string) (why string, err error) {
	target, why, err := s.target(link)
	if why != "" || err != nil {
		return why, err
	}
	if target == "." || strings.HasPrefix(link, target+"/") {
		return linkLoop, nil
	}
	entries := s.entries
	made, err := s.copy(target, link, to, nil)
	if errors.Is(err, errLarge) {
		s.entries = entries
		return linkLarge, nil
	}
	s.files = append(s.files, made...)
	return "", err
}

var errLarge = errors.New(linkLarge)

// copy creates hard links, at to, to a file of the result or to the files of a folder.
// They will be moved to path; copy returns their paths there. within lists the folders
// that contain from.
func (s *symlinks) copy(from, path, to string, within []string) (files []string, err error) {
	if s.entries++; s.entries > s.limit || len(path) > maxPath || len(within) > maxDepth {
		return nil, errLarge
	}
	info, err := s.root.Lstat(from)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, s.job.Link(filepath.Join(resultDir, from), to)
	}
	if err := s.job.Mkdir(to, 0o700); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(s.root.FS(), from)
	if err != nil {
		return nil, err
	}
	within = append(slices.Clip(within), from)
	for _, e := range entries {
		real := filepath.Join(from, e.Name())
		if e.Type() == fs.ModeSymlink {
			if real, err = s.nested(real, within); err != nil {
				return nil, err
			}
		}
		if real == "" || !e.IsDir() && e.Type() != fs.ModeSymlink && !s.known[real] {
			continue // listed under its own name
		}
		more, err := s.copy(real, filepath.Join(path, e.Name()), filepath.Join(to, e.Name()), within)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	return files, nil
}

// nested returns the target of a link in a copied folder, "" if the link is excluded.
func (s *symlinks) nested(link string, within []string) (string, error) {
	target, why, err := s.target(link)
	if why != "" || err != nil || slices.Contains(within, target) || target == "." || strings.HasPrefix(link, target+"/") {
		return "", err
	}
	return target, nil
}

// target follows a link to a file or folder of the result, or returns why there is none.
func (s *symlinks) target(link string) (path, why string, err error) {
	out := s.outPaths[0]
	at, rest := filepath.Join(out, filepath.Dir(link)), []string{filepath.Base(link)}
	for links := 0; len(rest) > 0; {
		name := rest[0]
		at, rest = filepath.Join(at, name), rest[1:]
		inside, ok := s.inside(at)
		if !ok || inside == "." {
			continue // a later element may lead back
		}
		if now := s.renamed[inside]; now != "" {
			inside = now
		}
		info, err := s.root.Lstat(inside)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), err == nil && s.isLeft(inside, info):
			return "", linkMissing, nil
		case err != nil:
			return "", "", err
		}
		at = filepath.Join(out, inside)
		if info.Mode().Type() != fs.ModeSymlink {
			if len(rest) > 0 && !info.IsDir() {
				return "", linkMissing, nil
			}
			continue
		}
		if links++; links > maxLinks {
			return "", linkLoop, nil
		}
		to, err := s.root.Readlink(inside)
		if err != nil {
			return "", "", err
		}
		if at = filepath.Dir(at); filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	path, ok := s.inside(at)
	if !ok {
		return "", linkOutside, nil
	}
	return path, "", nil
}

// isLeft reports whether a file is left out of the result.
func (s *symlinks) isLeft(path string, info fs.FileInfo) bool {
	return !info.IsDir() && info.Mode().Type() != fs.ModeSymlink && !s.known[path]
}

// inside returns the path within the result for a path as the program saw it.
func (s *symlinks) inside(path string) (string, bool) {
	for _, out := range s.outPaths {
		if rel, err := filepath.Rel(out, path); err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return "", false
}
