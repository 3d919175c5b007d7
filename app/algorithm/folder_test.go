package algorithm

import (
	"strings"
	"testing"
	"testing/fstest"

	"molrun/app/algorithm/folder"
	"molrun/app/algorithm/placement"
	"molrun/app/test/must"
)

// inFolder parses an algorithm file in a folder with two scripts and an example.
func inFolder(t *testing.T, text string) (*File, []Mistake) {
	t.Helper()
	f, wrong, err := folder.ReadFolder(fstest.MapFS{
		folder.Main: {Data: []byte(text)}, "run.sh": {Mode: 0o755}, "lib/a.py": {Mode: 0o644}, "example/x.pdb": {},
	})
	if err != nil || wrong != nil {
		t.Fatal(wrong, err)
	}
	return ParseFolder("t/"+folder.Main, f)
}

const folderHead = "format = 1\ntype = \"t\"\nversion = \"1\"\n"

func TestFolderStandsInCommandsVariablesAndTexts(t *testing.T) {
	a, mistakes := inFolder(t, folderHead+`
[env]
LIB = "{folder}/lib:{out}"
[[steps]]
command = ["{folder}/run.sh", "{folder}/lib/", "--x={folder}/lib/a.py"]
stdin = "{folder}/lib/a.py"
[[texts]]
file = "{work}/x"
text = "in {{.folder}}"
[validate]
command = ["python3", "{folder}/lib/a.py"]
`)
	if mistakes != nil {
		t.Fatal(mistakes)
	}
	run, err := a.Expand([]byte("{}"), placement.Resources{CPUs: 1}, Paths{Work: "/w", Out: "/w/out", In: "/w/in", Folder: "/kept"})
	must.OK(t, err)
	got := strings.Join(append(run.Steps[0].Argv, run.Steps[0].Stdin, run.Env["LIB"], run.Texts["/w/x"]), " ")
	if want := "/kept/run.sh /kept/lib/ --x=/kept/lib/a.py /kept/lib/a.py /kept/lib:/w/out in /kept"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestMistakesInUsesOfAFolder(t *testing.T) {
	for text, says := range map[string]string{
		`command = ["{folder}/lib/a.py"]`:                      "4: lib/a.py in the algorithm's folder is not executable: run chmod +x on it",
		`command = ["python3", "{folder}/run.py"]`:             "4: the algorithm's folder has no run.py",
		`command = ["{folder}/absent.sh"]`:                     "4: the algorithm's folder has no absent.sh",
		"command = [\"true\"]\n[env]\nX = \"{folder}/absent\"": "6: the algorithm's folder has no absent",
		"command = [\"true\"]\n[[parameters]]\nname = \"s\"\nfile = [\".pdb\"]\n[example]\nsettings = { s = \"example:y.pdb\" }": "9: the algorithm's folder has no example/y.pdb",
	} {
		_, mistakes := inFolder(t, folderHead+text+"\n")
		if len(mistakes) != 1 || !strings.HasPrefix(mistakes[0].String(), "t/algorithm.toml:"+says) {
			t.Errorf("%s\n%v, want %s", text, mistakes, says)
		}
	}
	_, mistakes := Parse("flat.toml", []byte(folderHead+"command = [\"{folder}/run.sh\"]\n"))
	if len(mistakes) != 1 || !strings.Contains(mistakes[0].String(), "flat.toml:4: {folder} is not available here") {
		t.Error(mistakes)
	}
}

// TestStoredFolderIsReadBack reads a job's copy of an algorithm after the algorithm was
// removed.
func TestStoredFolderIsReadBack(t *testing.T) {
	text := folderHead + "command = [\"{folder}/run.sh\"]\n"
	a, mistakes := inFolder(t, text)
	if mistakes != nil {
		t.Fatal(mistakes)
	}
	c, err := NewCatalogue(nil)
	must.OK(t, err)
	reads := 0
	read := func() ([]byte, error) { reads++; return a.Source, nil }
	for range 2 {
		b, err := c.Validated("t", "1", a.Digest, read)
		if err != nil || b.Digest != a.Digest || b.Folder.Digest != a.Digest || len(b.Folder.Files) != 4 || !b.Folder.Named("run.sh").Executable {
			t.Fatalf("%+v, %v", b, err)
		}
	}
	must.Equal(t, "read", reads, 1)
	if flat, _ := Parse("flat.toml", []byte(folderHead+"command = [\"true\"]\n")); flat.Digest == a.Digest || flat.Folder != nil || flat.Folder.DigestOrEmpty() != "" {
		t.Errorf("%+v", flat)
	}
	if _, mistakes := Parse("flat.toml", a.Source); len(mistakes) != 1 || !strings.Contains(mistakes[0].Msg, "which only molrun writes") {
		t.Error(mistakes)
	}
}
