package e2e

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// databasesOf creates the databases with testdata/msa_databases.py and returns their
// directory.
func databasesOf(t *testing.T) (folder string) {
	t.Helper()
	must.Installed(t, "mmseqs")
	must.InstalledFile(t, "/usr/bin/python3", "python3")
	folder = t.TempDir()
	if said, err := exec.CommandContext(t.Context(), "/usr/bin/python3", "testdata/msa_databases.py", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return folder
}

// siteOfDatabases returns a configuration in which site.paths.msa is folder.
func siteOfDatabases(folder string) string {
	return fmt.Sprintf("[database]\nfile_system = \"any\"\n[runner]\ncpus = 8\nmemory = \"64GiB\"\n[site.paths]\nmsa = %q\n", folder)
}

// a3m returns the names and sequences of an alignment in a result. Each sequence must
// have as many match columns as the first, which has no gaps or insertions.
func (u user) a3m(job, file string) (names, rows []string) {
	u.t.Helper()
	insertions := regexp.MustCompile(`[a-z]`)
	for _, record := range strings.Split(string(u.result(job, file)), ">")[1:] {
		head, row, _ := strings.Cut(strings.TrimSuffix(record, "\n"), "\n")
		name, _, _ := strings.Cut(head, "\t")
		names, rows = append(names, name), append(rows, row)
		if matched := insertions.ReplaceAllString(row, ""); len(matched) != len(rows[0]) {
			u.t.Errorf("%s of %s: %s has %d matches, want %d", file, job, name, len(matched), len(rows[0]))
		}
	}
	if strings.Contains(rows[0], "-") || insertions.MatchString(rows[0]) {
		u.t.Errorf("%s of %s begins with %s", file, job, rows[0])
	}
	return names, rows
}

// predictorsThatCopy replace catalogue types. They return their inputs as results.
var predictorsThatCopy = map[string]string{
	"boltz.toml": `format = 1
type = "boltz"
version = "1"
command = ["cp", "-t", "{out}", { each = "files.alignments", args = ["{item}"] }]

[[parameters]]
name = "proteins"
file = [".fasta"]

[[parameters]]
name = "alignments"
file = [".a3m"]
type = "array"
`,
	"colabfold.toml": `format = 1
type = "colabfold"
version = "1"
command = ["cp", "{files.alignment}", "{out}/complex.a3m"]

[[parameters]]
name = "alignment"
file = [".a3m"]
required = true
`,
}

// TestMSAFindsFamiliesAndPairsThemBySpecies searches databases that contain two families
// and passes the alignments to predictors.
func TestMSAFindsFamiliesAndPairsThemBySpecies(t *testing.T) {
	t.Parallel()
	folder := databasesOf(t)
	s := startServer(t, serverOptions{config: siteOfDatabases(folder), algorithms: predictorsThatCopy})
	if !s.sandboxed() {
		must.Skip(t, "no sandbox here")
	}
	u := s.user("lab", "ann@lab.example")
	p := u.person()
	must.Write(t, filepath.Join(p.dir, "fold.yaml"), must.Read(t, "../../client/examples/fold.yaml"))
	must.Write(t, filepath.Join(p.dir, "complex.fasta"), must.Read(t, filepath.Join(folder, "ab.fasta")))
	p.ok("batch", "-i", "fold.yaml")
	ab, other := u.upload("ab.fasta", must.Read(t, filepath.Join(folder, "ab.fasta"))), u.upload("other.fasta", must.Read(t, filepath.Join(folder, "other.fasta"))+">a \"short\", odd one\nmkU*\n")
	u.submit("complete", "msa", `{"sequences":"`+ab+`","pair":"complete","env":false,"cores":1,"memory":2}`)
	u.submit("alone", "msa", `{"sequences":"`+other+`","cores":1,"memory":2}`)

	greedy := u.completed("fold-msa")
	must.Equal(t, "warnings", len(greedy.Warnings), 0)
	must.Equal(t, "databases", greedy.Metrics.Results["databases"], any("Families 2026_01, Soil"))
	if n, _ := greedy.Metrics.Results["effective"].(float64); n < 30 {
		t.Errorf("effective sequences: %v", n)
	}
	for chain, family := range map[string]string{"001": "A", "002": "B", "003": "A"} {
		names, rows := u.a3m("fold-msa", "alignments/"+chain+".a3m")
		main, _ := u.a3m("fold-msa", "alignments/"+chain+".uniref.a3m")
		soil, _ := u.a3m("fold-msa", "alignments/"+chain+".env.a3m")
		if want := map[string]int{"A": 40, "B": 40}[family]; len(main) < want || len(names) > len(main)+len(soil)-1 {
			t.Errorf("chain %s: %d rows of the main database, %d of the other one, %d of both", chain, len(main), len(soil), len(names))
		}
		if there := len(soil) > 10; there != (family == "A") {
			t.Errorf("chain %s: %d environmental rows", chain, len(soil))
		}
		seen := map[string]bool{}
		for i, name := range names {
			if i > 0 && !strings.HasPrefix(name, family+"_") && !strings.HasPrefix(name, "sample_") {
				t.Errorf("chain %s: %s is in the alignment", chain, name)
			}
			if seen[rows[i]] {
				t.Errorf("chain %s: the row of %s is there twice", chain, name)
			}
			seen[rows[i]] = true
		}
	}
	first, _ := u.a3m("fold-msa", "alignments/003.a3m")
	must.Equal(t, "name of the third chain", first[0], "copy of A")

	for _, job := range []string{"fold-msa", "complete"} {
		u.completed(job)
		a, _ := u.a3m(job, "paired/001.a3m")
		b, _ := u.a3m(job, "paired/002.a3m")
		u.wantResult(job, "paired/003.a3m", strings.Replace(string(u.result(job, "paired/001.a3m")), "chain A", "copy of A", 1))
		if len(a) != len(b) || len(a) < 30 || len(a) > 41 {
			t.Fatalf("%s: %d and %d paired rows", job, len(a), len(b))
		}
		for i := 1; i < len(a); i++ {
			if strings.Split(a[i], "_")[1] != strings.Split(b[i], "_")[1] {
				t.Errorf("%s: %s is paired with %s", job, a[i], b[i])
			}
		}
	}
	if names := u.job("complete").Metrics.Results["databases"]; names != "Families 2026_01" {
		t.Errorf("without the environmental database: %v", names)
	}

	takenByPredictors(t, u, folder)

	alone := u.completed("alone")
	must.Equal(t, "rows of a protein without relatives", alone.Metrics.Results["sequences"], any(1.0))
	must.Equal(t, "warnings", strings.Join(alone.Warnings, "\n"), "No related sequences were found for 001 (other), 002 (a \"short\", odd one): the alignment contains only the chain itself.")
	u.wantResult("alone", "alignments/002.a3m", ">a \"short\", odd one\nMKU\n")
	if table := string(u.result("alone", "chains.csv")); !strings.HasSuffix(table, "\n002,\"a \"\"short\"\", odd one\",3,1,1.0,1,0,0,0\n") {
		t.Errorf("chains: %s", table)
	}
	var search struct {
		Databases []struct {
			Role, Path, Name, Release, Date, Digest string
			Expands, Taxonomy                       bool
		}
		Commands []string
	}
	must.OK(t, json.Unmarshal(u.result("alone", "search.json"), &search))
	if d := search.Databases; len(d) != 2 || d[0].Name != "Families" || d[0].Date != "2026-01-15" || len(d[0].Digest) != 64 || !d[0].Expands || d[1].Expands || d[1].Path != "plain" {
		t.Errorf("databases: %+v", d)
	}
	if all := strings.Join(search.Commands, "\n"); strings.Contains(all, folder) || strings.Count(all, "expandaln") != 1 {
		t.Errorf("commands: %s", all)
	}
}

// takenByPredictors checks that the predictors' own scripts accept the alignments of a
// complex.
func takenByPredictors(t *testing.T, u user, folder string) {
	t.Helper()
	dir := t.TempDir()
	var files []string
	u.completed("fold-boltz")
	u.completed("fold-colabfold")
	for name, job := range map[string]string{"001.a3m": "fold-boltz", "002.a3m": "fold-boltz", "complex.a3m": "fold-colabfold"} {
		files = append(files, filepath.Join(dir, name))
		must.Write(t, files[len(files)-1], string(u.result(job, name)))
	}
	slices.Sort(files)
	if all := u.job("fold-boltz").Inputs; len(all) != 3 {
		t.Errorf("boltz took %+v", all)
	}
	each := append([]string{"--proteins", filepath.Join(folder, "ab.fasta"), "--alignments"}, files[:2]...)
	for script, args := range map[string][]string{
		"boltz/complex.py": each, "chai-1/complex.py": each, "alphafold3/complex.py": each, "colabfold/query.py": {"--alignment", files[2]},
	} {
		c := exec.CommandContext(t.Context(), "/usr/bin/python3", append([]string{"../../algorithm/builtin/catalogue/" + script, "check"}, args...)...)
		c.Env = append(os.Environ(), "PYTHONPATH=../../algorithm/builtin/catalogue/lib", "PYTHONDONTWRITEBYTECODE=1")
		c.Stdin = strings.NewReader("{}")
		said, err := c.CombinedOutput()
		if err != nil || string(said) != "[]\n" {
			t.Errorf("%s: %v, %s", script, err, said)
		}
	}
	head, rest, _ := strings.Cut(must.Read(t, files[2]), "\n")
	must.Equal(t, "head of the complex", head, "#120,90\t2,1")
	if paired, unpaired := strings.Count(rest, "\t1017\tB_17"), strings.Count(rest, ">A_17_0\t")-1; paired != 1 || unpaired != 1 {
		t.Errorf("A_17 is there in %d paired rows and %d others", paired, unpaired)
	}
}

// TestMSAPairsAndWeighsRows tests only the scripts, with fixed search results.
func TestMSAPairsAndWeighsRows(t *testing.T) {
	t.Parallel()
	must.InstalledFile(t, "/usr/bin/python3", "python3")
	const script = `
import sys, types
sys.argv[1:] = ["probe", "none"]
sys.modules["databases"] = types.SimpleNamespace(Fault=Exception, release=None, site=lambda _: None)
import search
from alignment import Alignment
queries = {"001": "ACDE", "002": "FGHI", "003": "KLMN"}
for complete in (False, True):
    rows = search.paired(sys.argv[0] + ".tsv", queries, complete)
    print([[f"{head.split()[0]}:{row}" for head, row in rows[n]] for n in queries])
a = Alignment([("q", "ACDEFGHIKL"), ("b", "ACDEFGHIK-"), ("c", "ACDEFGHI--"), ("d", "----FGwHIKL"), ("b", "ACDEFGHIK-")])
print(len(a.rows), a.counts, [round(n, 2) for n in a.effective], round(a.depth, 2), round(a.coverage, 2))
`
	dir := t.TempDir()
	must.Write(t, filepath.Join(dir, "try.py"), script)
	must.Write(t, filepath.Join(dir, "try.py.tsv"), strings.Join([]string{
		"001\ta9\t9\t50\t1\tACDE\tACDE", "001\ta9b\t9\t40\t1\tACDE\tACDQ", "001\ta8\t8\t90\t2\tC-DE\tCWD-", "002\tb8\t8\t10\t1\tFGH\tFGH",
		"002\tb9\t9\t80\t1\tFGHI\tFGHI", "003\tc9\t9\t80\t1\tKLMN\tKLMN", "003\tc7\t7\t80\t1\tKLMN\tKLMN", "001\ta0\t0\t80\t1\tACDE\tACDE", "002\tb0\t0\t80\t1\tFGHI\tFGHI",
	}, "\n")+"\n")
	c := exec.CommandContext(t.Context(), "/usr/bin/python3", filepath.Join(dir, "try.py"))
	c.Env = append(os.Environ(), "PYTHONPATH=../../algorithm/builtin/catalogue/msa:../../algorithm/builtin/catalogue/lib", "PYTHONDONTWRITEBYTECODE=1")
	said, err := c.CombinedOutput()
	must.OK(t, err)
	// q, b and c are at least 80 % identical to each other; d is similar to none of them.
	must.Equal(t, "rows", string(said), `[['a9:ACDE', 'a8:-CwD-'], ['b9:FGHI', 'b8:FGH-'], ['c9:KLMN', 'none:----']]
[['a9:ACDE'], ['b9:FGHI'], ['c9:KLMN']]
4 [3, 3, 3, 3, 4, 4, 4, 4, 3, 2] [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 1.67, 1.33] 1.5 0.77
`)
}

// TestMSASaysWhatIsWrongWithDatabases damages the databases and makes requests that
// cannot be met.
func TestMSASaysWhatIsWrongWithDatabases(t *testing.T) {
	t.Parallel()
	must.Installed(t, "mmseqs")
	folder := t.TempDir()
	s := startServer(t, serverOptions{config: siteOfDatabases(folder)})
	if !s.sandboxed() {
		must.Skip(t, "no sandbox here")
	}
	u := s.user("lab", "ann@lab.example")
	two, one := u.upload("two.fasta", ">a\nMKVLAAGIVG\n>b\nGGSWSDEEKK\n"), u.upload("one.fasta", ">a\nMKVLAAGIVG\n")
	dna := u.upload("dna.fasta", ">a\nACGTACGTACGTACGTACGTACGT\n")
	dbtype := func(name string, kind uint32) {
		must.OK(t, os.WriteFile(filepath.Join(folder, name+".dbtype"), binary.LittleEndian.AppendUint32(nil, kind), 0o600))
		must.Write(t, filepath.Join(folder, name+".index"), "0\t0\t10\n")
	}
	dbtype("plain", 0)
	const broken, pair = `{"main":{"path":"broken","name":"Broken"}}`, `"pair":"greedy"`
	for _, tt := range []struct {
		name, databases string
		kind            uint32
		settings, want  string
	}{
		{"DNA", `{"main":{"path":"plain"}}`, 0, `"sequences":"` + dna + `"`, "body.settings.sequences"},
		{"no taxonomy", "", 0, `"sequences":"` + two + `",` + pair, "its database plain has no species for its sequences"},
		{"no file", "none", 0, "", "has no databases.json"},
		{"no JSON", "{", 0, "", "databases.json on this server is not valid JSON"},
		{"no main", `{"environmental":{"path":"plain"}}`, 0, "", "must have main"},
		{"other key", `{"main":{"path":"plain","nam":"x"}}`, 0, "", "needs strings for main"},
		{"wrong path", `{"main":{"path":"uniref30_2302_db","name":"UniRef30"}}`, 0, "", "the database UniRef30 is missing or incomplete on this server: its folder has no uniref30_2302_db.dbtype and .index"},
		{"elsewhere", `{"main":{"path":"../plain"}}`, 0, "", "must be inside the folder"},
		{"nucleotides", broken, 1, "", "the database Broken contains nucleotides"},
		{"alignments", broken, 5, "", "is not a sequence database"},
		{"for GPUs", broken, 8 << 16, "", "was made by a newer MMseqs2 than this server's 14"},
		{"empty", broken, 0, "", "the database Broken has no sequences"},
	} {
		if tt.databases != "" {
			must.Write(t, filepath.Join(folder, "databases.json"), tt.databases)
		}
		if tt.databases == "none" {
			must.OK(t, os.Remove(filepath.Join(folder, "databases.json")))
		}
		dbtype("broken", tt.kind)
		if tt.name == "empty" {
			must.Write(t, filepath.Join(folder, "broken.index"), "")
		}
		if tt.settings == "" {
			tt.settings = `"sequences":"` + one + `"`
		}
		details := strings.Join(u.do("POST", "/submit-job", `{"jobName":"refused","type":"msa","settings":{`+tt.settings+`}}`).want(422).details(), "\n")
		if !strings.Contains(details, tt.want) {
			t.Errorf("%s: %s, want %q", tt.name, details, tt.want)
		}
	}
	// Submissions are accepted even if only the nodes of a cluster have MMseqs2 or the
	// databases.
	for _, elsewhere := range []struct{ path, folder string }{{"/nowhere", folder}, {os.Getenv("PATH"), "/nowhere"}} {
		must.Write(t, filepath.Join(folder, "databases.json"), `{"main":{"path":"plain"}}`)
		c := exec.CommandContext(t.Context(), "/usr/bin/python3", "../../algorithm/builtin/catalogue/msa/search.py", "check", elsewhere.folder, filepath.Join(folder, "two.fasta"))
		must.Write(t, filepath.Join(folder, "two.fasta"), ">a\nMKV\n>b\nGGS\n")
		c.Env = []string{"PATH=" + elsewhere.path, "PYTHONPATH=../../algorithm/builtin/catalogue/lib", "PYTHONDONTWRITEBYTECODE=1"}
		c.Stdin = strings.NewReader(`{"pair":"none"}`)
		if said, err := c.CombinedOutput(); err != nil || string(said) != "[]\n" {
			t.Errorf("%+v: %v, %s", elsewhere, err, said)
		}
	}
	must.Write(t, filepath.Join(folder, "databases.json"), broken)
	config := filepath.Join(t.TempDir(), "config.toml")
	must.Write(t, config, siteOfDatabases(folder))
	if out, errs, code := outside(t, "algorithms", "test", "--config", config, "msa"); code != 1 || !strings.Contains(out+errs, "The database Broken has no sequences") {
		t.Errorf("test: %d: %s%s", code, out, errs)
	}
}
