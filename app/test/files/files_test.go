package files

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"molrun/app/base/structure"
	"molrun/app/test/must"
)

// spellings returns the number of files to generate, which the variable SPELLINGS can
// set.
func spellings(t *testing.T) int {
	t.Helper()
	text := os.Getenv("SPELLINGS")
	if text == "" {
		return 500
	}
	n, err := strconv.Atoi(text)
	must.OK(t, err)
	return n
}

// foreign lists files that gemmi reads differently according to the rules in doc.go.
var foreign = strings.Fields("bom.cif bom.pdb cr.pdb dimer-blank.pdb named-pdb-but-gz.pdb waters-hex.pdb waters-wrap.pdb.gz")

// stored returns the paths of all structures in the repository, without duplicates, and
// of those listed in the variable STRUCTURES.
func stored(t *testing.T) (all []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, pattern := range append([]string{"testdata/*.pdb*", "testdata/*.cif*", "../../algorithm/builtin/examples/*.pdb", "../../algorithm/builtin/catalogue/*/example/*.pdb"}, strings.Fields(os.Getenv("STRUCTURES"))...) {
		paths, err := filepath.Glob(pattern)
		must.OK(t, err)
		for _, path := range paths {
			if text := must.Read(t, path); !seen[text] {
				seen[text] = true
				all = append(all, path)
			}
		}
	}
	return all
}

// maker returns a function that generates the file with a given number, which is always
// the same. The files cycle through the structures in the repository and one random
// structure.
func maker(t *testing.T) func(number int) *spelling {
	t.Helper()
	of := protein(t)
	var all []molecules
	for _, path := range stored(t) {
		all = append(all, read(t, path))
	}
	return func(number int) *spelling {
		random := rand.New(rand.NewPCG(uint64(number), 1))
		if k := number % (len(all) + 1); k < len(all) {
			return spell(all[k].again(random), number)
		}
		return spell(invented(random, of), number)
	}
}

func countsOf(text []byte) counts {
	m, err := structure.Read(bytes.NewReader(text))
	c := counts{Models: m.Models, Atoms: m.Atoms}
	if err != nil {
		c.Error = err.Error()
	}
	chains := map[string]bool{}
	for _, r := range m.Residues {
		switch r.Kind {
		case structure.Ligand:
			c.Ligands++
		case structure.Water:
			c.Waters++
		default:
			chains[r.ChainID()] = true
			c.Residues++
		}
	}
	c.Chains = len(chains)
	return c
}

func TestStructuresAreReadAlike(t *testing.T) {
	made := maker(t)
	for number := range spellings(t) {
		s := made(number)
		if got := countsOf(s.text); got != s.want {
			t.Errorf("%s (%s):\n%+v, want\n%+v", s.name, strings.Join(s.how, ", "), got, s.want)
		}
		if dir := os.Getenv("KEPT"); dir != "" && number < 200 && !s.shared {
			s.keep(t, dir)
		}
	}
}

// keep stores a file for the tests of the viewer, and appends its counts to their list.
func (s *spelling) keep(t *testing.T, dir string) {
	t.Helper()
	must.Write(t, filepath.Join(dir, s.name), string(s.text))
	list, err := os.OpenFile(filepath.Join(dir, "counts"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must.OK(t, err)
	must.OK(t, json.NewEncoder(list).Encode(map[string]any{"name": s.name, "how": strings.Join(s.how, ", "), "want": s.want}))
	must.OK(t, list.Close())
}

// TestStructuresAreReadAsGemmiReadsThem also compares the structures in the repository
// with gemmi.
func TestStructuresAreReadAsGemmiReadsThem(t *testing.T) {
	made, ask := maker(t), gemmi(t)
	for _, path := range stored(t) {
		if !slices.Contains(foreign, filepath.Base(path)) {
			if got, want := countsOf([]byte(must.Read(t, path))), ask(path); got != want {
				t.Errorf("%s:\n%+v, gemmi has\n%+v", path, got, want)
			}
		}
	}
	dir := t.TempDir()
	for number := range spellings(t) {
		s := made(number)
		if s.foreign {
			continue
		}
		path := filepath.Join(dir, s.name)
		must.Write(t, path, string(s.text))
		got, want := s.want, ask(path)
		if s.guessed {
			got, want = got.together(), want.together()
		}
		if got != want {
			t.Errorf("%s (%s):\nis\n%+v, gemmi has\n%+v", s.name, strings.Join(s.how, ", "), got, want)
		}
		must.OK(t, os.Remove(path))
	}
}

// gemmi returns a function that returns gemmi's counts for a file.
func gemmi(t *testing.T) func(path string) counts {
	t.Helper()
	if exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", "import gemmi").Run() != nil {
		must.Skip(t, "python3-gemmi is not installed")
	}
	c := exec.CommandContext(t.Context(), "/usr/bin/python3", "testdata/count.py")
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	must.OK(t, err)
	out, err := c.StdoutPipe()
	must.OK(t, err)
	must.OK(t, c.Start())
	t.Cleanup(func() {
		_ = in.Close() // gemmi exits at the end of its input
		_ = c.Wait()
	})
	lines := bufio.NewScanner(out)
	return func(path string) (answer counts) {
		t.Helper()
		_, err := in.Write([]byte(path + "\n"))
		must.OK(t, err)
		if !lines.Scan() {
			t.Fatal("gemmi has ended")
		}
		must.OK(t, json.Unmarshal(lines.Bytes(), &answer))
		return answer
	}
}
