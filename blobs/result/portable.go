package result

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"molrun/app"
)

// portableNames returns the names that the files of a manifest have in an archive. Windows
// and macOS don't distinguish Model.pdb from model.pdb, and Windows refuses some names:
// unpacked there, the archive would lose files.
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

// free returns the name, or one like it where that is taken, and takes it.
func free(name string, taken map[string]bool) string {
	ext := path.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	for n := 2; taken[strings.ToLower(name)]; n++ {
		name = fmt.Sprintf("%s~%d%s", stem, n, ext)
	}
	taken[strings.ToLower(name)] = true
	return name
}

// portable returns a path with what Windows refuses written as %XX.
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

// device matches the names that Windows has for devices, with any extension.
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
