package algorithm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Catalogue holds all algorithms on offer.
type Catalogue struct {
	types map[string]*versions
}

// versions are all algorithms of one type, newest last.
type versions struct {
	all       []*File
	preferred *File
}

// NewCatalogue refuses two files of one type and version, and two defaults of
// one type. Without a default, the highest version is the default.
func NewCatalogue(all []*File) (*Catalogue, error) {
	c := &Catalogue{types: map[string]*versions{}}
	for _, a := range all {
		v := c.types[a.Type]
		if v == nil {
			v = &versions{}
			c.types[a.Type] = v
		}
		for _, other := range v.all {
			switch {
			case other.Version == a.Version:
				return nil, fmt.Errorf("%s and %s both define %s version %s: change the version of one", other.Path, a.Path, a.Type, a.Version)
			case other.Default && a.Default:
				return nil, fmt.Errorf("%s and %s both want to be the default of %s: remove default = true from one", other.Path, a.Path, a.Type)
			}
		}
		v.all = append(v.all, a)
	}
	for _, v := range c.types {
		slices.SortFunc(v.all, func(x, y *File) int { return compareVersions(x.Version, y.Version) })
		v.preferred = v.all[len(v.all)-1]
		if i := slices.IndexFunc(v.all, func(a *File) bool { return a.Default }); i >= 0 {
			v.preferred = v.all[i]
		}
	}
	return c, nil
}

// Find returns an algorithm; version "" is the default of its type.
func (c *Catalogue) Find(typ, version string) (*File, bool) {
	v := c.types[typ]
	if v == nil {
		return nil, false
	}
	if version == "" {
		return v.preferred, true
	}
	i := slices.IndexFunc(v.all, func(a *File) bool { return a.Version == version })
	if i < 0 {
		return nil, false
	}
	return v.all[i], true
}

// Types returns the types on offer, sorted.
func (c *Catalogue) Types() []string {
	return slices.Sorted(maps.Keys(c.types))
}

// Versions returns all algorithms of a type, newest last.
func (c *Catalogue) Versions(typ string) []*File {
	if v := c.types[typ]; v != nil {
		return slices.Clone(v.all)
	}
	return nil
}

// VersionNames returns the versions of a type, newest last.
func (c *Catalogue) VersionNames(typ string) []string {
	names := []string{}
	for _, a := range c.Versions(typ) {
		names = append(names, a.Version)
	}
	return names
}

// compareVersions orders versions as people count: 1.10 is after 1.9.
func compareVersions(x, y string) int {
	a, b := x, y
	for a != "" && b != "" {
		var p, q string
		p, a = cutRun(a)
		q, b = cutRun(b)
		if d := compareRuns(p, q); d != 0 {
			return d
		}
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(x, y))
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// cutRun splits off the longest prefix of only digits or of no digits.
func cutRun(s string) (run, rest string) {
	i := 1
	for i < len(s) && isDigit(s[i]) == isDigit(s[0]) {
		i++
	}
	return s[:i], s[i:]
}

func compareRuns(p, q string) int {
	if isDigit(p[0]) && isDigit(q[0]) {
		p, q = strings.TrimLeft(p, "0"), strings.TrimLeft(q, "0")
		return cmp.Or(cmp.Compare(len(p), len(q)), cmp.Compare(p, q))
	}
	return cmp.Compare(p, q)
}
