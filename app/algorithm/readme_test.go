package algorithm

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"molrun/app/algorithm/command"
	"molrun/app/algorithm/folder"
	"molrun/app/base/strictjson"
	"molrun/app/test/must"
)

// formatReference returns the documentation of algorithm files.
func formatReference(t *testing.T) string {
	t.Helper()
	text := must.Read(t, "../../web/docs/format.md")
	return text
}

// TestSnippetsOfTheFormatReferenceAreCorrect parses every TOML block, adding the required
// keys to partial files.
func TestSnippetsOfTheFormatReferenceAreCorrect(t *testing.T) {
	blocks := regexp.MustCompile("(?ms)^```toml\n(.*?)^```").FindAllStringSubmatch(formatReference(t), -1)
	whole := 0
	for i, block := range blocks {
		text := block[1]
		if strings.HasPrefix(text, "format = ") {
			whole++
		} else {
			head := "format = 1\ntype = \"part\"\nversion = \"1\"\n"
			if !strings.Contains(text, "[[steps]]") {
				head += "command = [\"true\"]\n"
			}
			text = head + text
		}
		a, mistakes := parseBlock(t, fmt.Sprintf("block %d", i+1), text)
		for _, m := range mistakes {
			t.Errorf("%v in\n%s", m, text)
		}
		if a != nil {
			a.site = map[string]string{"boltz": "/data/boltz"}
			checkExpansion(t, a)
		}
	}
	if whole == 0 || len(blocks) < 8 {
		t.Errorf("%d blocks of TOML, %d whole files: the reference was not read", len(blocks), whole)
	}
}

// parseBlock parses an algorithm file. If the file uses {folder}, it creates a folder
// with the files referred to.
func parseBlock(t *testing.T, name, text string) (*File, []Mistake) {
	t.Helper()
	if !strings.Contains(text, "{folder}") {
		return Parse(name, []byte(text))
	}
	files := fstest.MapFS{folder.Main: {Data: []byte(text)}}
	for _, m := range regexp.MustCompile(`\{folder\}/([a-z./]+)`).FindAllStringSubmatch(text, -1) {
		files[m[1]] = &fstest.MapFile{Mode: 0o755}
	}
	for _, m := range regexp.MustCompile(`example:([a-z.]+)`).FindAllStringSubmatch(text, -1) {
		files["example/"+m[1]] = &fstest.MapFile{}
	}
	f, wrong, err := folder.ReadFolder(files)
	if err != nil || wrong != nil {
		t.Fatal(wrong, err)
	}
	return ParseFolder(name, f)
}

// checkExpansion expands the placeholders twice: with all files, and with only the
// required files and those of a one_of choice.
func checkExpansion(t *testing.T, a *File) {
	t.Helper()
	paths := Paths{Work: "/w", Out: "/w/out", SettingsFile: "/w/settings.json", Program: "/molrun", Folder: "/folder", Files: map[string][]string{}}
	paths.Facts = Facts{}
	for file, names := range a.Parameters.factNames() {
		paths.Facts[file] = map[string]float64{}
		for _, name := range names {
			paths.Facts[file][name] = 1
		}
	}
	least, all := []string{}, []string{}
	for _, p := range a.Parameters {
		if len(p.File) == 0 {
			continue
		}
		paths.Files[p.Name] = []string{"/w/in/" + p.Name + p.File[0]}
		chosen := slices.ContainsFunc(a.relations.choices, func(c choice) bool { return slices.Contains(c.names, p.Name) })
		ref := fmt.Sprintf("%q", "inputs/a"+p.File[0])
		if p.Many {
			ref = "[" + ref + "," + ref + "]"
		}
		if all = append(all, fmt.Sprintf("%q:%s", p.Name, ref)); p.Required || chosen {
			least = append(least, all[len(all)-1])
		}
	}
	for _, files := range [][]string{least, all} {
		v, err := strictjson.Parse([]byte("{" + strings.Join(files, ",") + "}"))
		must.OK(t, err)
		normal, faults := a.CheckSettings(v)
		if len(faults) > 0 {
			t.Errorf("settings of %s: %v", a.Path, faults)
			continue
		}
		needs, faults := a.Needs(normal, paths.Facts)
		if len(faults) > 0 {
			t.Errorf("resources of %s: %v", a.Path, faults)
		}
		if _, err := a.Expand(Normalize(normal), needs, paths); err != nil {
			t.Errorf("commands of %s: %v", a.Path, err)
		}
	}
}

// propertiesBelow returns the names of all properties of a schema and its subschemas.
func propertiesBelow(part *strictjson.Value) (names []string) {
	for _, m := range part.Members {
		if m.Name == "properties" {
			for _, property := range m.Value.Members {
				names = append(names, property.Name)
			}
		}
		names = append(names, propertiesBelow(m.Value)...)
	}
	return names
}

// TestFormatReferenceNamesEveryKey finds undocumented keys.
func TestFormatReferenceNamesEveryKey(t *testing.T) {
	text := formatReference(t)
	keys := propertiesBelow(loadFormat().tree)
	for _, key := range keys {
		if !regexp.MustCompile("[`\\[]" + key + "[`\\] ]").MatchString(text) {
			t.Errorf("the reference does not name the key %s", key)
		}
	}
	for _, p := range command.Placeholders {
		if !regexp.MustCompile("\\{" + p + "[.}]").MatchString(text) {
			t.Errorf("the reference does not name the placeholder {%s}", p)
		}
	}
}
