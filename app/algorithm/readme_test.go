package algorithm

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"molrun/app/algorithm/command"
	"molrun/app/strictjson"
)

// formatReference is the documentation of algorithm files.
func formatReference(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../algorithms/README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSnippetsOfTheFormatReferenceAreCorrect parses every block of TOML. It
// completes a part of a file with the required keys.
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
		a, mistakes := Parse(fmt.Sprintf("block %d", i+1), []byte(text))
		for _, m := range mistakes {
			t.Errorf("%v in\n%s", m, text)
		}
		if a != nil {
			checkExpansion(t, a)
		}
	}
	if whole == 0 || len(blocks) < 8 {
		t.Errorf("%d blocks of TOML, %d whole files: the reference was not read", len(blocks), whole)
	}
}

// checkExpansion fills in the placeholders with all files, and with the
// required ones alone.
func checkExpansion(t *testing.T, a *File) {
	t.Helper()
	paths := Paths{Work: "/w", Out: "/w/out", SettingsFile: "/w/settings.json", Program: "/molrun", Files: map[string]string{}}
	least, all := []string{}, []string{}
	for _, p := range a.Parameters {
		if len(p.File) == 0 {
			continue
		}
		paths.Files[p.Name] = "/w/in/" + p.Name + p.File[0]
		if all = append(all, fmt.Sprintf("%q:%q", p.Name, "inputs/a"+p.File[0])); p.Required {
			least = append(least, all[len(all)-1])
		}
	}
	for _, files := range [][]string{least, all} {
		v, err := strictjson.Parse([]byte("{" + strings.Join(files, ",") + "}"))
		if err != nil {
			t.Fatal(err)
		}
		normal, faults := a.CheckSettings(v)
		if len(faults) > 0 {
			t.Errorf("settings of %s: %v", a.Path, faults)
			continue
		}
		needs, faults := a.Needs(normal)
		if len(faults) > 0 {
			t.Errorf("resources of %s: %v", a.Path, faults)
		}
		if _, _, err := a.Expand(normal, needs, paths); err != nil {
			t.Errorf("commands of %s: %v", a.Path, err)
		}
	}
}

// TestFormatReferenceNamesEveryKey finds keys that nobody has documented.
func TestFormatReferenceNamesEveryKey(t *testing.T) {
	text := formatReference(t)
	keys := slices.Concat(topKeys, parameterKeys,
		[]string{"cpus", "memory", "gpus", "partition", "account", "qos", "constraint", "options", "read", "network", "many", "pattern", "better", "rank", "message", "settings", "expect", "files", "if", "args", "kind", "topology", "x", "y", "units"})
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
