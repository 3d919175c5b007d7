package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// cover is a path at which something hidden would be visible.
type cover struct {
	path   string
	folder bool // otherwise a file
}

// covered returns the hidden paths below visible ones, each once, without those inside
// another hidden folder.
func covered(hidden, seen []string) (all []cover) {
	paths := make([]string, len(hidden))
	for i, h := range hidden {
		paths[i] = resolved(h)
	}
	for _, path := range seen {
		at := resolved(path)
		for _, h := range paths {
			inside := func(o string) bool { return o != h && isBelow(h, o) && isBelow(o, at) }
			if !isBelow(h, at) || slices.ContainsFunc(paths, inside) {
				continue
			}
			info, err := os.Stat(h)
			if err != nil {
				continue
			}
			if c := (cover{filepath.Join(path, strings.TrimPrefix(h, at)), info.IsDir()}); !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	return all
}

// masks returns bwrap's arguments that cover the hidden paths below visible ones, and the
// folders that this creates.
func masks(hidden, seen []string) (a, folders []string) {
	for _, c := range covered(hidden, seen) {
		if c.folder {
			a = append(a, "--tmpfs", c.path)
			folders = append(folders, c.path)
		} else {
			a = append(a, "--ro-bind", os.DevNull, c.path)
		}
	}
	return a, folders
}

// divide separates the paths at or below which something is hidden from the others.
func divide(paths, hidden []string) (wide, narrow []string) {
	for _, path := range paths {
		if hidesBelow(path, hidden) {
			wide = append(wide, path)
		} else {
			narrow = append(narrow, path)
		}
	}
	return wide, narrow
}

// hidesBelow reports whether something is hidden at or below path.
func hidesBelow(path string, hidden []string) bool {
	at := resolved(path)
	return slices.ContainsFunc(hidden, func(h string) bool { return isBelow(resolved(h), at) })
}

// isHidden reports whether a path is at or below a hidden one.
func isHidden(path string, hidden []string) bool {
	at := resolved(path)
	return slices.ContainsFunc(hidden, func(h string) bool { return isBelow(at, resolved(h)) })
}

// resolved returns the path with symbolic links resolved, or just cleaned if it does not
// exist.
func resolved(path string) string {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		return at
	}
	return filepath.Clean(path)
}
