package remote

import (
	"encoding/json"
	"testing"

	"molrun/app/client"

	"github.com/google/go-cmp/cmp"
)

func TestSettingsAreSentAsTheyAreWritten(t *testing.T) {
	got := string(encoded(map[string]any{"a": "x<y>&z", "n": json.Number("1.50")}))
	if want := `{"a":"x<y>&z","n":1.50}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestRowsGetCommonSettingsAndUniqueNames(t *testing.T) {
	b := batch{common: map[string]any{"steps": 1, "seed": 2}}
	b.Name = "b"
	b.addRows([]map[string]any{{"file": "x", "seed": 3}, {"file": "y"}, {"file": "z"}}, []string{"m", "m", ""})
	got := []string{string(b.Settings[0]), string(b.Settings[1]), b.Names[0], b.Names[1], b.Names[2]}
	want := []string{`{"file":"x","seed":3,"steps":1}`, `{"file":"y","seed":2,"steps":1}`, "b-m", "b-2", "b-3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// References normalize Unicode, so that a name from macOS equals the same name from
// Linux.
func TestReferencesAreComposed(t *testing.T) {
	if got := (sentFile{&client.File{SHA256: "ab"}}).Reference("x/Pru\u0308f.pdb"); got != "sha256:ab/Prüf.pdb" {
		t.Error(got)
	}
}
