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

// All offers every type of the catalogue, None no type.
const (
	All  = "all"
	None = "none"
)

// Catalogue joins the built-in algorithms, the types of the catalogue that are offered (All,
// None or their names), and those in the site's folder, if there is one. A site's own
// algorithm takes the place of the catalogue's of the same type. Files with mistakes are
// left out, and each mistake is reported; the catalogue's of that type is then not ready,
// since it may do something else than the site means. Types of the catalogue are read when
// they are asked for.
func Catalogue(folder string, offered []string, report func(algorithm.Mistake)) (*algorithm.Catalogue, error) {
	return Again(folder, offered, nil, func(m algorithm.Mistake, _ *algorithm.File) { report(m) })
}

// Again is Catalogue, where last are the site's algorithms as they were read before: one
// whose file has a mistake now stays as it was, and report is told.
func Again(folder string, offered []string, last []*algorithm.File, report func(m algorithm.Mistake, kept *algorithm.File)) (*algorithm.Catalogue, error) {
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
		if site, hidden, err = siteOwn(folder, last, report); err != nil {
			return nil, err
		}
	}
	var later []algorithm.Later
	for _, name := range names {
		if !slices.ContainsFunc(site, func(own *algorithm.File) bool { return own.Type == name }) {
			later = append(later, algorithm.Later{Type: name, Hidden: hidden[name], Read: func() *algorithm.File { return catalogueType(name, hidden[name]) }})
		}
	}
	return algorithm.NewCatalogue(append(all, site...), later...)
}

// siteOwn reads the site's folder. hidden are types that have a mistake, and why.
func siteOwn(folder string, last []*algorithm.File, report func(algorithm.Mistake, *algorithm.File)) (site []*algorithm.File, hidden map[string]string, err error) {
	site, mistakes, err := LoadFolder(folder)
	if err != nil {
		return nil, nil, fmt.Errorf("read the folder of algorithms %s: %w", folder, err)
	}
	hidden = map[string]string{}
	for _, m := range mistakes {
		old := lastGood(folder, m, last)
		if old != nil && slices.ContainsFunc(site, func(a *algorithm.File) bool { return a != old && a.Type == old.Type && a.Version == old.Version }) {
			old = nil // another file defines it now
		}
		report(m, old)
		switch {
		case old != nil && !slices.Contains(site, old):
			site = append(site, old)
		case old == nil && hidden[m.Type] == "":
			hidden[m.Type] = fmt.Sprintf("the site's own %s has a mistake in line %d: %s", filepath.Base(m.File), m.Line, m.Msg)
		}
	}
	return site, hidden, nil
}

// lastGood returns what the file or folder of a mistake defined before; nil if nothing.
func lastGood(folder string, m algorithm.Mistake, last []*algorithm.File) *algorithm.File {
	i := slices.IndexFunc(last, func(a *algorithm.File) bool {
		return !a.BuiltIn && entryOf(folder, a.Path) == entryOf(folder, m.File)
	})
	if i < 0 {
		return nil
	}
	return last[i]
}

// entryOf returns the name in the folder of algorithms that a path lies at or below.
func entryOf(folder, path string) string {
	rest, err := filepath.Rel(folder, path)
	if err != nil {
		return path
	}
	name, _, _ := strings.Cut(rest, string(filepath.Separator))
	return name
}

// catalogueType reads a type of the catalogue. A mistake is one in the program itself.
func catalogueType(name, hidden string) *algorithm.File {
	a, mistakes, err := parseFolder(folderOf(name), filepath.Join(builtInName(name), folder.Main))
	if err != nil || len(mistakes) > 0 {
		panic(fmt.Sprintf("the catalogue's %s: %v %v", name, mistakes, err))
	}
	a.BuiltIn, a.Hidden = true, hidden
	return a
}

// catalogued returns the names of the types of the catalogue that are offered.
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
	return fault.Errorf(fault.Invalid, "catalogue: there is no type %q in the catalogue; give %s", name, strings.Join(names, ", "))
}
