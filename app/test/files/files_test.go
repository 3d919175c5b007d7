package files

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"molrun/app/base/structure"
	"molrun/app/test/must"
)

// spellings is how many files are made, SPELLINGS if that is set.
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

// made returns the file of a number, which is always the same.
func made(of [][]atom, number int) *spelling {
	return spell(content(rand.New(rand.NewPCG(uint64(number), 1)), of), number)
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
	of := protein(t)
	for number := range spellings(t) {
		s := made(of, number)
		if got := countsOf(s.text); got != s.want {
			t.Errorf("%s (%s):\n%+v, want\n%+v", s.name, strings.Join(s.how, ", "), got, s.want)
		}
	}
}

// TestStructuresAreReadAsGemmiReadsThem also asks gemmi for what is in testdata.
func TestStructuresAreReadAsGemmiReadsThem(t *testing.T) {
	of, ask := protein(t), gemmi(t)
	foreign := map[string]bool{
		"bom.cif": true, "bom.pdb": true, "cr.pdb": true, "dimer-blank.pdb": true, "named-pdb-but-gz.pdb": true, "waters-hex.pdb": true, "waters-wrap.pdb.gz": true,
	}
	all, err := filepath.Glob("testdata/*.*")
	must.OK(t, err)
	for _, path := range all {
		if name := filepath.Base(path); !foreign[name] && name != "count.py" {
			if got, want := countsOf([]byte(must.Read(t, path))), ask(path); got != want {
				t.Errorf("%s:\n%+v, gemmi has\n%+v", name, got, want)
			}
		}
	}
	dir := t.TempDir()
	for number := range spellings(t) {
		s := made(of, number)
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

// gemmi returns a function that asks gemmi what a file has.
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
		_ = in.Close() // then it ends
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
