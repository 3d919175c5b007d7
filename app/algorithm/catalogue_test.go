package algorithm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"molrun/app/test/must"
)

func offer(t *testing.T, file, typ, version string, preferred bool) *File {
	t.Helper()
	a, mistakes := Parse(file, fmt.Appendf(nil, "format = 1\ntype = %q\nversion = %q\ndefault = %v\ncommand = [\"true\"]\n", typ, version, preferred))
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	return a
}

func TestCatalogueFinds(t *testing.T) {
	c, err := NewCatalogue([]*File{
		offer(t, "a10.toml", "a", "1.10", false), offer(t, "b2.toml", "b", "2", false), offer(t, "a9.toml", "a", "1.9", false),
		offer(t, "b1.toml", "b", "1", true),
	})
	must.OK(t, err)
	tests := []struct{ typ, version, want string }{
		{"a", "", "a10.toml"}, {"a", "1.9", "a9.toml"}, {"b", "", "b1.toml"}, {"b", "2", "b2.toml"}, {"b", "3", ""}, {"c", "", ""},
	}
	for _, tt := range tests {
		a, ok := c.Find(tt.typ, tt.version)
		if ok != (tt.want != "") || ok && a.Path != tt.want {
			t.Errorf("Find(%q, %q) = %v, %v; want %q", tt.typ, tt.version, a, ok, tt.want)
		}
	}
	must.Equal(t, "types", strings.Join(c.Types(), " "), "a b")
	must.Equal(t, "versions", strings.Join(c.VersionNames("a"), " "), "1.9 1.10")
	if got := c.Versions("c"); len(got) != 0 {
		t.Errorf("versions of an unknown type %v", got)
	}
}

func TestCatalogueRefuses(t *testing.T) {
	tests := []struct {
		name string
		all  []*File
		want string
	}{
		{"one version twice", []*File{offer(t, "x.toml", "a", "1", false), offer(t, "y.toml", "a", "1", false)}, "x.toml and y.toml both define a version 1"},
		{"two defaults", []*File{offer(t, "x.toml", "a", "1", true), offer(t, "y.toml", "a", "2", true)}, "x.toml and y.toml are both the default of a"},
	}
	for _, tt := range tests {
		must.Fail(t, tt.name, must.Error2(NewCatalogue(tt.all)), tt.want)
	}
}

func TestVersionsSortNumerically(t *testing.T) {
	want := []string{"0.9", "1", "1.0", "1.1", "1.1.1", "1.2", "1.9", "1.10", "1.10b", "2", "10", "2023.12", "2024.1", "2024.02", "2024.10", "99999999999999999999999", "v1"}
	for range 20 {
		got := slices.Clone(want)
		rand.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		slices.SortFunc(got, compareVersions)
		if !slices.Equal(got, want) {
			t.Fatalf("sorted\ngot  %q\nwant %q", got, want)
		}
	}
	if compareVersions("1.01", "1.1") == 0 {
		t.Error("different versions are equal")
	}
}
