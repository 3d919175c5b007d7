package result

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"molrun/app"
)

// portableNames returns the names of the files of a manifest in an archive. Windows and
// macOS do not distinguish Model.pdb from model.pdb, and Windows rejects some names:
// files would be lost when the archive is unpacked there.
func portableNames(m *app.Manifest) []string {
	names := make([]string, len(m.Files))
	taken := make(map[string]bool, len(m.Files))
	for i := range m.Files {
		names[i] = portable(m.Files[i].Name)
		for dir := path.Dir(names[i]); dir != "." && !taken[strings.ToLower(dir)]; dir = path.Dir(dir) {
			taken[strings.ToLower(dir)] = true
		}
	}
	for i, name := range names {
		names[i] = free(name, taken)
	}
	return names
}

// free returns name, or a variant if it is taken, and marks it as taken.
func free(name string, taken map[string]bool) string {
	ext := path.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	for n := 2; taken[strings.ToLower(name)]; n++ {
		name = fmt.Sprintf("%s~%d%s", stem, n, ext)
	}
	taken[strings.ToLower(name)] = true
	return name
}

// portable returns a path with the characters that Windows rejects written as %XX.
func portable(name string) string {
	if !strings.ContainsAny(name, `<>:"|?*. `) && !device.MatchString(name) {
		return name
	}
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = portableName(p)
	}
	return strings.Join(parts, "/")
}

// device matches Windows device names, with any extension.
var device = regexp.MustCompile(`(?i)(^|/)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|/|$)`)

func portableName(name string) string {
	var b strings.Builder
	for i, c := range []byte(name) {
		last := i == len(name)-1 && (c == '.' || c == ' ')
		if last || strings.IndexByte(`<>:"|?*`, c) >= 0 || i == 0 && device.MatchString(name) {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
