package algorithm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"molrun/app/algorithm/folder"
	"molrun/app/base/fault"
)

// Catalogue holds all available algorithms and can read older versions that jobs still
// use. Replace can change the available algorithms at any time; Snapshot returns a
// catalogue that does not change.
type Catalogue struct {
	offer   atomic.Pointer[map[string]*versions]
	folders *folder.Store     // nil if no copies are kept
	site    map[string]string // paths of the site, by name

	mu     sync.Mutex
	stored map[string]*File // by digest
}

// maxStored limits how many files that are no longer available are cached in memory.
const maxStored = 256

// types returns the available algorithms by type. The map is never modified, only
// replaced.
func (c *Catalogue) types() map[string]*versions { return *c.offer.Load() }

// Snapshot returns a snapshot, a catalogue whose algorithms are never replaced.
func (c *Catalogue) Snapshot() *Catalogue {
	now := &Catalogue{folders: c.folders, site: c.site}
	now.offer.Store(c.offer.Load())
	return now
}

// Replace makes the algorithms of another catalogue available instead; that catalogue
// must not be used afterwards. Files already read stay in memory if their type is
// unchanged.
func (c *Catalogue) Replace(by *Catalogue) {
	types, before := by.types(), c.types()
	for typ, v := range types {
		old := before[typ]
		if old != nil && v.later != nil && old.later != nil && v.later.Hidden == old.later.Hidden {
			types[typ] = old
			continue
		}
		for _, a := range v.all {
			if old == nil || old.later != nil || !slices.Contains(old.all, a) { // don't modify files that jobs could be using
				a.site = c.site
				a.Folder.KeepIn(c.folders)
			}
		}
	}
	c.offer.Store(&types)
}

// versions holds all algorithms of one type, newest last.
type versions struct {
	all       []*File
	preferred *File

	later *LazyFile // reads the only version on first use; nil if all are read
	once  sync.Once
}

// LazyFile is an algorithm that is read on first use. It must be the only version of its
// type and free of errors.
type LazyFile struct {
	Type   string
	Hidden string // why it is not ready, as in File
	Read   func() *File
}

// NewCatalogue returns a catalogue of the given algorithms. It rejects two files of the
// same type and version, and two defaults of the same type. If no default is declared,
// the highest version is the default.
func NewCatalogue(all []*File, later ...LazyFile) (*Catalogue, error) {
	types := map[string]*versions{}
	for _, l := range later {
		types[l.Type] = &versions{later: &l}
	}
	for _, a := range all {
		v := types[a.Type]
		if v == nil || v.later != nil {
			v = &versions{}
			types[a.Type] = v
		}
		for _, other := range v.all {
			switch {
			case other.Version == a.Version:
				return nil, fmt.Errorf("%s and %s both define %s version %s: change the version of one", other.Path, a.Path, a.Type, a.Version)
			case other.Default && a.Default:
				return nil, fmt.Errorf("%s and %s are both the default of %s: remove default = true from one", other.Path, a.Path, a.Type)
			}
		}
		v.all = append(v.all, a)
	}
	for _, v := range types {
		if v.later != nil {
			continue
		}
		slices.SortFunc(v.all, func(x, y *File) int { return compareVersions(x.Version, y.Version) })
		v.preferred = v.all[len(v.all)-1]
		if i := slices.IndexFunc(v.all, func(a *File) bool { return a.Default }); i >= 0 {
			v.preferred = v.all[i]
		}
	}
	c := &Catalogue{}
	c.offer.Store(&types)
	return c, nil
}

// versionsOf returns the algorithms of a type, or nil if there are none. It reads them if
// necessary.
func (c *Catalogue) versionsOf(typ string) *versions {
	v := c.types()[typ]
	if v == nil || v.later == nil {
		return v
	}
	v.once.Do(func() {
		a := v.later.Read()
		a.site = c.site
		a.Folder.KeepIn(c.folders)
		v.all, v.preferred = []*File{a}, a
	})
	return v
}

// Find returns an algorithm. An empty version means the default of its type.
func (c *Catalogue) Find(typ, version string) (*File, bool) {
	v := c.versionsOf(typ)
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

// ReadNow returns the algorithms that are not read lazily, which include all of the
// site's own.
func (c *Catalogue) ReadNow() (all []*File) {
	types := c.types()
	for _, typ := range slices.Sorted(maps.Keys(types)) {
		if v := types[typ]; v.later == nil {
			all = append(all, v.all...)
		}
	}
	return all
}

// KeepFoldersIn makes the algorithms keep copies of their folders. It must be called before
// any algorithm is requested.
func (c *Catalogue) KeepFoldersIn(in *folder.Store) {
	c.folders = in
	for _, v := range c.types() {
		for _, a := range v.all {
			a.Folder.KeepIn(in)
		}
	}
}

// Validated returns the algorithm that a job was validated against, identified by its
// digest. It can be older than the available one. read must return its Source.
func (c *Catalogue) Validated(typ, version, digest string, read func() ([]byte, error)) (*File, error) {
	if a, ok := c.Find(typ, version); ok && a.Digest == digest {
		return a, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.stored[digest]; a != nil {
		return a, nil
	}
	text, err := read()
	if err != nil {
		return nil, err
	}
	a, mistakes := parseStored(typ+"-"+version+".toml", text)
	if len(mistakes) > 0 {
		return nil, fault.Errorf(fault.Internal, "the stored definition of %s %s can't be read: line %d: %s", typ, version, mistakes[0].Line, mistakes[0].Msg)
	}
	a.Folder.KeepIn(c.folders)
	a.site = c.site
	if c.stored == nil || len(c.stored) >= maxStored {
		c.stored = map[string]*File{}
	}
	c.stored[digest] = a
	return a, nil
}

// HasFolder reports whether an available algorithm has a folder and this digest.
func (c *Catalogue) HasFolder(digest string) bool {
	now := c.Snapshot()
	for _, typ := range now.Types() {
		if slices.ContainsFunc(now.versionsOf(typ).all, func(a *File) bool { return a.Folder != nil && a.Digest == digest }) {
			return true
		}
	}
	return false
}

// Types returns the available types, sorted.
func (c *Catalogue) Types() []string {
	return slices.Sorted(maps.Keys(c.types()))
}

// Versions returns all algorithms of a type, newest last.
func (c *Catalogue) Versions(typ string) []*File {
	if v := c.versionsOf(typ); v != nil {
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

// compareVersions orders versions naturally: 1.10 comes after 1.9.
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

// cutRun splits off the longest prefix that consists of digits only or of non-digits
// only.
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

// SetSitePaths sets the site's paths, keyed by their names in [site.paths]. It must be
// called before any algorithm is requested.
func (c *Catalogue) SetSitePaths(paths map[string]string) {
	c.site = paths
	for _, v := range c.types() {
		for _, a := range v.all {
			a.site = paths
		}
	}
}
