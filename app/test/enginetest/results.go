package enginetest

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// ReadJSON returns the decoded content of a JSON file.
func ReadJSON[T any](t testing.TB, path ...string) (content T) {
	t.Helper()
	must.OK(t, json.Unmarshal(Read(t, path...), &content))
	return content
}

// ReadCSV returns the rows of a CSV file.
func ReadCSV(t testing.TB, path ...string) [][]string {
	t.Helper()
	rows, err := csv.NewReader(bytes.NewReader(Read(t, path...))).ReadAll()
	must.OK(t, err)
	return rows
}

// Read returns the content of a file.
func Read(t testing.TB, path ...string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	must.OK(t, err)
	return content
}

var timing = regexp.MustCompile(`(?s)"(steps_per_second|ns_per_day|wall_s|cores)": [0-9.e+]+|"performance": \{[^}]*\}`)

// Files returns the content of all result files below a directory, without values that
// depend on timing or on the number of cores.
func Files(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must.OK(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		content := Read(t, path)
		if strings.HasSuffix(name, ".json") {
			content = timing.ReplaceAll(content, nil)
		}
		all[name] = string(content)
		return err
	}))
	return all
}
