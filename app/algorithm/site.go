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

// Untested is the status of an algorithm written from its program's documentation and
// never run with it.
const Untested = "untested"

// Asset is a file or folder, such as model weights, that an algorithm needs but does not
// include.
type Asset struct {
	Name   string
	Size   int64  // bytes; 0 if unknown
	SHA256 string // hex; files only; "" if unknown
	From   string // where to obtain it

	path  command.Template
	about bool // Size is rounded

	address string             // URL of the file; "" if none
	fetch   []command.Argument // command that creates it; nil if none
}

// siteRequirements lists what an algorithm requires of a machine apart from programs.
type siteRequirements struct {
	names  []string // keys of [site.paths] that it uses
	assets []Asset
}

func readAssets(c commandReader) []Asset {
	r := c.Reader
	c.allowed = []string{"site"}
	var all []Asset
	for _, t := range r.Tables(r.Root, "assets") {
		if t.Member("size") == nil && t.Member("sha256") == nil && t.Member("fetch") == nil {
			r.Errorf(t.Line, "[[assets]] needs size or sha256, to identify the asset, or fetch")
		}
		a := Asset{Name: r.Text(t, "name"), From: r.Line(t, "from")}
		if slices.ContainsFunc(all, func(other Asset) bool { return other.Name == a.Name && a.Name != "" }) {
			r.Errorf(t.Line, "two assets are named %q", a.Name)
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
			c.Errorf(n.Line, `path must be absolute or begin with a site path: "{site.NAME}/weights.ckpt"; got %q`, n.Text)
		}
	}
	if n := t.Member("size"); n != nil {
		if n.Kind == strictjson.String {
			size, ok := parseBytes(n.Text)
			if !ok {
				c.Errorf(n.Line, `size %q is not a size: write it like "3.5GiB", or as the exact number of bytes`, n.Text)
			}
			a.Size, a.about = size, true
		} else {
			a.Size = c.Within(n, "size", 1, maxMemory)
		}
	}
	if n := t.Member("sha256"); n != nil {
		if a.SHA256 = c.Text(t, "sha256"); !digestPattern.MatchString(a.SHA256) {
			c.Errorf(n.Line, "sha256 must be 64 hexadecimal digits, in lower case")
		}
	}
}

// readFetch reads how to obtain the asset: the URL of the file, or a command that creates
// it.
func (a *Asset) readFetch(c commandReader, t *tomltree.Node) {
	if n := t.Member("fetch"); n != nil && n.Kind == strictjson.String {
		a.address = n.Text
		if !addressPattern.MatchString(n.Text) {
			c.Errorf(n.Line, `fetch %q is not a file URL: write it like "https://example.org/weights.ckpt", or give a command as a list`, n.Text)
		}
		if a.From == "" {
			a.From = a.address
		}
	}
	a.fetch = c.commandOf(t, "fetch")
	if a.From == "" {
		c.Errorf(t.Line, "[[assets]] needs from, a description of where to get it, or its URL as fetch")
	}
}

// pathAt returns the path of the asset, or "" if the site does not define it.
func (a *Asset) pathAt(site map[string]string) string {
	path, err := a.path.Expand(&command.Values{Site: site})
	if err != nil {
		return ""
	}
	return path
}

// missingHere describes the site paths and assets missing on the machine.
func (w *siteRequirements) missingHere(m placement.Machine) (missing []string) {
	for _, name := range w.names {
		path, known := m.Site[name]
		if !known {
			missing = append(missing, command.NoSite(name).Error())
			continue
		}
		if _, err := os.Stat(path); err != nil && m.Local {
			missing = append(missing, fmt.Sprintf("%s does not exist: it is site.paths.%s in the configuration", path, name))
		}
	}
	for _, a := range w.assets {
		if path := a.pathAt(m.Site); path != "" && m.Local {
			if msg := a.problem(path); msg != "" {
				missing = append(missing, msg)
			}
		}
	}
	return missing
}

// unknown returns an error for the first path that the site does not define.
func (w *siteRequirements) unknown(site map[string]string) error {
	for _, name := range w.names {
		if site[name] == "" {
			return command.NoSite(name)
		}
	}
	return nil
}

// tolerance limits how far a file's size can differ from a rounded size: by at most
// 1/tolerance of that size.
const tolerance = 20 // 5 %

// problem describes what is wrong with the asset at path, judging only by existence and
// size.
func (a *Asset) problem(path string) string {
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
