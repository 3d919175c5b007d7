package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"molrun/app/algorithm"
	"molrun/app/task"
	"molrun/app/test/must"
)

// hostileTexts returns the strings in testdata/hostile.txt.
func hostileTexts(t *testing.T) []string {
	t.Helper()
	file := must.Read(t, "testdata/hostile.txt")
	var texts []string
	for line := range strings.Lines(file) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		text, err := strconv.Unquote(line)
		must.OK(t, err)
		if text == "LONG" {
			text = strings.Repeat("long $(touch MARK) ", 4000)
		}
		texts = append(texts, text)
	}
	return texts
}

// freeText reports whether a parameter accepts arbitrary text, alone or in a list.
func freeText(p *algorithm.Parameter) bool {
	var schema struct {
		Type  any
		Enum  []any
		Items struct {
			Type any
			Enum []any
		}
	}
	if len(p.File) > 0 || json.Unmarshal(p.Schema, &schema) != nil {
		return false
	}
	return schema.Type == "string" && schema.Enum == nil || schema.Items.Type == "string" && schema.Items.Enum == nil
}

// Text from users becomes arguments and lines of files, and must never be interpreted.
func TestHostileTextsAreNotInterpreted(t *testing.T) {
	t.Parallel()
	b := newTrials(t, "off") // without a sandbox, which could hide harm
	b.tryHostileTexts()
	confined := newTrials(t, "auto")
	confined.types = slices.DeleteFunc(confined.types, func(a *algorithm.File) bool {
		return slices.ContainsFunc(b.types, func(tried *algorithm.File) bool { return tried.Type == a.Type })
	})
	confined.tryHostileTexts()
}

func (b *trials) tryHostileTexts() {
	b.t.Helper()
	marks := b.t.TempDir()
	texts := map[*trialCase]string{}
	var submitted []*trialCase
	count := 0
	for _, a := range b.types {
		example := b.example(a)
		for i := range a.Parameters {
			p := &a.Parameters[i]
			if !freeText(p) {
				continue
			}
			for n, text := range hostileTexts(b.t) {
				text = strings.ReplaceAll(text, "MARK", filepath.Join(marks, fmt.Sprintf("%s-%s-%d", a.Type, p.Name, n)))
				c := &trialCase{algorithm: a, name: fmt.Sprintf("%s = %.60q", p.Name, text), settings: changed(p, example, text)}
				if count++; !b.refused(c) {
					submitted, texts[c] = append(submitted, c), text
				}
			}
		}
	}
	all := len(submitted)
	submitted = b.sample(submitted)
	b.t.Logf("%d of %d hostile texts were refused, %d of the others are submitted", count-all, count, len(submitted))
	b.run(submitted, func(c *trialCase, r record) { b.checkUninterpreted(c, r, texts[c]) })
	made, err := os.ReadDir(marks)
	must.OK(b.t, err)
	for _, mark := range made {
		b.t.Errorf("a text was run: it made %s", mark.Name())
	}
}

// checkUninterpreted fails the test if the arguments, environment, log or result of a job
// show that its text was interpreted.
func (b *trials) checkUninterpreted(c *trialCase, r record, text string) {
	b.t.Helper()
	dir := filepath.Join(b.u.data(), "jobs", r.JobID)
	spec, err := task.ReadSpec(filepath.Join(dir, "1"))
	must.OK(b.t, err)
	words := strings.Fields(text)
	for _, step := range spec.Steps {
		for _, argument := range step.Argv {
			if len(words) > 1 && slices.Contains(words, argument) && !b.usual(c, argument) {
				b.t.Errorf("%s: %q is an argument of its own in %q", c, argument, step.Argv)
			}
		}
	}
	must.OK(b.t, filepath.WalkDir(dir, func(name string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(name)
		if i := strings.Index(string(content), "PWNED"); i >= 0 {
			b.t.Errorf("%s: %s has %q", c, name, content[max(0, i-50):min(len(content), i+50)])
		}
		return err
	}))
}

// usual reports whether an argument appears in the algorithm file itself.
func (b *trials) usual(c *trialCase, argument string) bool {
	return strings.Contains(string(c.algorithm.Source), argument)
}
