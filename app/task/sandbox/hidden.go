package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// masks are bwrap's arguments that cover the hidden paths below what is seen, and the folders that
// this makes.
func masks(hidden, seen []string) (a, covers []string) {
	for _, path := range seen {
		at := resolved(path)
		for _, h := range hidden {
			h = resolved(h)
			info, err := os.Stat(h)
			if err != nil || !isBelow(h, at) {
				continue
			}
			inside := filepath.Join(path, strings.TrimPrefix(h, at))
			if info.IsDir() {
				a = append(a, "--tmpfs", inside)
				covers = append(covers, inside)
			} else {
				a = append(a, "--ro-bind", os.DevNull, inside)
			}
		}
	}
	return a, covers
}

// holds reports whether something hidden is below path, or is it.
func holds(path string, hidden []string) bool {
	at := resolved(path)
	return slices.ContainsFunc(hidden, func(h string) bool { return isBelow(resolved(h), at) })
}

// isHidden reports whether a path is hidden, or below what is.
func isHidden(path string, hidden []string) bool {
	at := resolved(path)
	return slices.ContainsFunc(hidden, func(h string) bool { return isBelow(at, resolved(h)) })
}

// resolved returns the path without symbolic links, as far as it exists.
func resolved(path string) string {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		return at
	}
	return filepath.Clean(path)
}
