package algorithm

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"molrun/app/algorithm/command"
	"molrun/app/algorithm/placement"
	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
	"molrun/app/base/unit"
)

var (
	digestPattern  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	addressPattern = regexp.MustCompile(`^https?://[!-~]+$`)
)

// Untested is the status of an algorithm that follows its program's documentation and was
// never run with it.
const Untested = "untested"

// Asset is a file or a folder that an algorithm needs and does not bring, such as weights.
type Asset struct {
	Name   string
	Size   int64  // bytes; 0: unknown
	SHA256 string // hex, of a file; "": unknown
	From   string // where to get it

	path  command.Template
	about bool // Size is rounded

	address string             // of the file, on the web; "": none
	fetch   []command.Argument // makes it; nil: none
}

// whereabouts are what an algorithm needs of a machine besides programs.
type whereabouts struct {
	names  []string // of [site.paths] that it uses
	assets []Asset
}

// readAssets reads [[assets]].
func readAssets(c commandReader) []Asset {
	r := c.Reader
	c.allowed = []string{"site"}
	var all []Asset
	for _, t := range r.Tables(r.Root, "assets") {
		if t.Member("size") == nil && t.Member("sha256") == nil && t.Member("fetch") == nil {
			r.Mistakef(t.Line, "[[assets]] needs size or sha256, by which the asset is recognized, or fetch")
		}
		a := Asset{Name: r.Text(t, "name"), From: r.Line(t, "from")}
		if slices.ContainsFunc(all, func(other Asset) bool { return other.Name == a.Name && a.Name != "" }) {
			r.Mistakef(t.Line, "two assets are named %q", a.Name)
		}
		a.readContent(c, t)
		a.readFetch(c, t)
		all = append(all, a)
	}
	return all
}

func (a *Asset) readContent(c commandReader, t *tomltree.Node) {
	if n := t.Member("path"); n != nil && n.Kind == strictjson.String {
		a.path = c.template(n)
		if text, plain := a.path.Literal(); plain && !filepath.IsAbs(text) || !plain && a.path[0].Kind != "site" {
			c.Mistakef(n.Line, `path must be absolute, or begin with a folder of the site: "{site.NAME}/weights.ckpt"; got %q`, n.Text)
		}
	}
	if n := t.Member("size"); n != nil {
		if n.Kind == strictjson.String {
			size, ok := parseBytes(n.Text)
			if !ok {
				c.Mistakef(n.Line, `size %q is no size: write it like "3.5GiB", or as the exact number of bytes`, n.Text)
			}
			a.Size, a.about = size, true
		} else {
			a.Size = c.Within(n, "size", 1, maxMemory)
		}
	}
	if n := t.Member("sha256"); n != nil {
		if a.SHA256 = c.Text(t, "sha256"); !digestPattern.MatchString(a.SHA256) {
			c.Mistakef(n.Line, "sha256 must be 64 hexadecimal digits, in lower case")
		}
	}
}

// readFetch reads how to get the asset: the address of the file, or a command that makes it.
func (a *Asset) readFetch(c commandReader, t *tomltree.Node) {
	if n := t.Member("fetch"); n != nil && n.Kind == strictjson.String {
		a.address = n.Text
		if !addressPattern.MatchString(n.Text) {
			c.Mistakef(n.Line, `fetch %q is no address of a file: write it like "https://example.org/weights.ckpt", or a command as a list`, n.Text)
		}
		if a.From == "" {
			a.From = a.address
		}
	}
	a.fetch = c.commandOf(t, "fetch")
	if a.From == "" {
		c.Mistakef(t.Line, "[[assets]] needs from, which says where to get it, or its address as fetch")
	}
}

// pathAt returns the path of the asset, "" if the site does not say it.
func (a *Asset) pathAt(site map[string]string) string {
	path, err := a.path.Expand(&command.Values{Site: site})
	if err != nil {
		return ""
	}
	return path
}

// missingHere says which of the site's paths and of the assets are not there.
func (w *whereabouts) missingHere(m placement.Machine) (missing []string) {
	for _, name := range w.names {
		path, known := m.Site[name]
		if !known {
			missing = append(missing, command.NoSite(name).Error())
			continue
		}
		if _, err := os.Stat(path); err != nil && m.Local {
			missing = append(missing, fmt.Sprintf("%s is not there: it is site.paths.%s in the configuration", path, name))
		}
	}
	for _, a := range w.assets {
		if path := a.pathAt(m.Site); path != "" && m.Local {
			if msg := a.wrong(path); msg != "" {
				missing = append(missing, msg)
			}
		}
	}
	return missing
}

// unknown returns an error for a path that the site does not say.
func (w *whereabouts) unknown(site map[string]string) error {
	for _, name := range w.names {
		if site[name] == "" {
			return command.NoSite(name)
		}
	}
	return nil
}

// tolerance is by how much a file may differ from a rounded size.
const tolerance = 20 // a twentieth

// wrong says what is wrong with the asset at a path, as far as that is seen at a glance.
func (a *Asset) wrong(path string) string {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		size := ""
		if a.Size > 0 {
			size = fmt.Sprintf(" (%s)", unit.Bytes(a.Size))
		}
		return fmt.Sprintf("%s%s is not at %s: get it from %s", a.Name, size, path, a.From)
	case info.IsDir() || a.Size == 0 || info.Size() == a.Size:
		return ""
	case a.about && max(info.Size()-a.Size, a.Size-info.Size()) <= a.Size/tolerance:
		return ""
	}
	return fmt.Sprintf("%s at %s has %s instead of %s: get it again from %s", a.Name, path, unit.Bytes(info.Size()), unit.Bytes(a.Size), a.From)
}
