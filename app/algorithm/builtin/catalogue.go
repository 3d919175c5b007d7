package builtin

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"molrun/app/algorithm"
	"molrun/app/algorithm/folder"
	"molrun/app/base/fault"
	"molrun/app/base/plaintext"
)

// All enables every type of the catalogue, and None disables them all.
const (
	All  = "all"
	None = "none"
)

// Catalogue combines the built-in algorithms, the enabled types of the catalogue (All,
// None or a list of names), and the algorithms in the site's folder, if there is one. A
// site's own algorithm replaces the catalogue's algorithm of the same type. Files with
// errors are left out and each error is reported; the catalogue's algorithm of that type
// is then not ready, since it could differ from what the site intends. Types of the
// catalogue are read on first use.
func Catalogue(folder string, offered []string, report func(algorithm.Mistake)) (*algorithm.Catalogue, error) {
	return Reload(folder, offered, nil, func(m algorithm.Mistake, _ *algorithm.File) { report(m) })
}

// Reload is like Catalogue, but replaces an existing catalogue. last holds the site's
// algorithms as previously read; if a file now has an error, its previous algorithm is
// kept and passed to report.
func Reload(folder string, offered []string, last []*algorithm.File, report func(m algorithm.Mistake, kept *algorithm.File)) (*algorithm.Catalogue, error) {
	all, err := BuiltIn()
	if err != nil {
		return nil, err
	}
	names, err := catalogued(offered)
	if err != nil {
		return nil, err
	}
	var site []*algorithm.File
	hidden := map[string]string{}
	if folder != "" {
		if site, hidden, err = readSiteFolder(folder, last, report); err != nil {
			return nil, err
		}
	}
	var later []algorithm.LazyFile
	for _, name := range names {
		if !slices.ContainsFunc(site, func(own *algorithm.File) bool { return own.Type == name }) {
			later = append(later, algorithm.LazyFile{Type: name, Hidden: hidden[name], Read: func() *algorithm.File { return catalogueType(name, hidden[name]) }})
		}
	}
	return algorithm.NewCatalogue(append(all, site...), later...)
}

// readSiteFolder reads the site's folder. hidden maps each type with an error to the reason.
func readSiteFolder(folder string, last []*algorithm.File, report func(algorithm.Mistake, *algorithm.File)) (site []*algorithm.File, hidden map[string]string, err error) {
	site, mistakes, err := LoadFolder(folder)
	if err != nil {
		return nil, nil, fmt.Errorf("read the algorithms folder %s: %w", folder, err)
	}
	hidden = map[string]string{}
	for _, m := range mistakes {
		old := lastGood(folder, m, last)
		if old != nil && slices.ContainsFunc(site, func(a *algorithm.File) bool { return a != old && a.Type == old.Type && a.Version == old.Version }) {
			old = nil // now defined by another file
		}
		report(m, old)
		switch {
		case old != nil && !slices.Contains(site, old):
			site = append(site, old)
		case old == nil && hidden[m.Type] == "":
			hidden[m.Type] = fmt.Sprintf("the site's own %s has an error in line %d: %s", filepath.Base(m.File), m.Line, m.Msg)
		}
	}
	return site, hidden, nil
}

// lastGood returns the algorithm that the file or folder with the error previously
// defined, or nil if there was none.
func lastGood(folder string, m algorithm.Mistake, last []*algorithm.File) *algorithm.File {
	i := slices.IndexFunc(last, func(a *algorithm.File) bool {
		return !a.BuiltIn && entryOf(folder, a.Path) == entryOf(folder, m.File)
	})
	if i < 0 {
		return nil
	}
	return last[i]
}

// entryOf returns the name of the entry of folder that path refers to or lies within.
func entryOf(folder, path string) string {
	rest, err := filepath.Rel(folder, path)
	if err != nil {
		return path
	}
	name, _, _ := strings.Cut(rest, string(filepath.Separator))
	return name
}

// catalogueType reads a type of the catalogue. It panics if the type has errors, which is
// a bug in molrun.
func catalogueType(name, hidden string) *algorithm.File {
	a, mistakes, err := parseFolder(folderOf(name), filepath.Join(builtInName(name), folder.Main))
	if err != nil || len(mistakes) > 0 {
		panic(fmt.Sprintf("the catalogue's %s: %v %v", name, mistakes, err))
	}
	a.BuiltIn, a.Hidden = true, hidden
	return a
}

// catalogued returns the names of the enabled types of the catalogue.
func catalogued(offered []string) ([]string, error) {
	if slices.Equal(offered, []string{None}) || len(offered) == 0 {
		return nil, nil
	}
	all := types()
	if slices.Equal(offered, []string{All}) {
		return all, nil
	}
	for _, name := range offered {
		if !slices.Contains(all, name) {
			return nil, notCatalogued(name, all)
		}
	}
	return offered, nil
}

func notCatalogued(name string, all []string) error {
	names := append([]string{All, None}, all...)
	near := plaintext.Nearest(name, names)
	if near != "" {
		return fault.Errorf(fault.Invalid, "catalogue: there is no type %q in the catalogue; did you mean %q?", name, near)
	}
	return fault.Errorf(fault.Invalid, "catalogue: there is no type %q in the catalogue; use %s", name, strings.Join(names, ", "))
}
