package remote

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTablesOfAllSystems(t *testing.T) {
	want := [][]string{{"name", "steps"}, {"a", "1"}, {"b", "2"}}
	for _, text := range []string{"name,steps\na,1\nb,2\n", "\uFEFFname,steps\r\na,1\r\nb,2", "name,steps\ra,1\rb,2\r", "name,steps\r\na,1\rb,2\n"} {
		path := filepath.Join(t.TempDir(), "t.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readTable(path, ".csv")
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v, %s", text, err, diff)
		}
	}
}
