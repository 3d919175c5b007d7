package result

import (
	"testing"

	"molrun/app"
	"molrun/app/test/must"
)

func TestPortableNames(t *testing.T) {
	var m app.Manifest
	want := []string{}
	for _, name := range [][2]string{
		{" lead.pdb", " lead.pdb"},
		{"-rf", "-rf"},
		{"A/x.pdb", "A/x.pdb"},
		{"CON.txt", "%43ON.txt"},
		{"Model.pdb", "Model.pdb"},
		{"a/x.pdb", "a/x~2.pdb"},
		{"a:b*?.pdb", "a%3Ab%2A%3F.pdb"},
		{"aux/b", "%61ux/b"},
		{"console", "console"},
		{"dot./b ", "dot%2E/b%20"},
		{"latest", "latest~2"},
		{"LATEST/b", "LATEST/b"},
		{"model.pdb", "model~2.pdb"},
		{"model~2.pdb", "model~2~2.pdb"},
		{"Über", "Über"},
		{"über", "über~2"},
	} {
		m.Files = append(m.Files, app.ManifestFile{Name: name[0]})
		want = append(want, name[1])
	}
	must.Equal(t, "names", portableNames(&m), want)
}
