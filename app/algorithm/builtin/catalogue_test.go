package builtin

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"molrun/app/algorithm"
	"molrun/app/algorithm/content"
	"molrun/app/algorithm/folder"
	"molrun/app/algorithm/placement"
	"molrun/app/algorithm/results"
	"molrun/app/algorithm/validator"
	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
	"molrun/app/base/structure"
	"molrun/app/test/must"
)

// doi matches DOIs, with the pattern that registration agencies recommend.
var doi = regexp.MustCompile(`^10\.\d{4,9}/[-._;()/:A-Za-z0-9]+$`)

func catalogueOf(t *testing.T) (all []*algorithm.File) {
	t.Helper()
	for _, name := range types() {
		all = append(all, catalogueType(name, ""))
	}
	if len(all) < 30 {
		t.Fatalf("only %d types", len(all))
	}
	return all
}

// TestCatalogueIsComplete checks the catalogue against the requirements in
// web/docs/format.md.
func TestCatalogueIsComplete(t *testing.T) {
	for _, a := range catalogueOf(t) {
		lacks := func(what string, missing bool) {
			t.Helper()
			if missing {
				t.Errorf("%s lacks %s", a.Path, what)
			}
		}
		lacks("format = 1", !strings.HasPrefix(string(a.Source), "format = 1\n"))
		lacks("a title", a.Title == a.Type)
		lacks("a description of some length", len(a.Description) < 100)
		lacks("DOIs", len(a.Cite) == 0)
		lacks("categories", len(a.Categories) == 0)
		lacks("functions", len(a.Functions) == 0)
		lacks("a folder of its name", filepath.Base(filepath.Dir(a.Path)) != "(built in) "+a.Type)
		lacks("a required output", !slices.ContainsFunc(a.Outputs, func(o results.Output) bool { return o.Required }))
		lacks("views", len(a.Views) == 0)
		lacks("failures", len(a.Failures) == 0)
		lacks("an example with expectations", a.Example == nil || len(a.Example.Files) == 0)
		lacks("[estimate]", a.SizeFormula() == "")
		for _, cited := range a.Cite {
			lacks("a DOI in "+cited, !doi.MatchString(cited))
		}
		for _, p := range a.Parameters {
			lacks("title and help of "+p.Name, p.Title == "" || p.Help == "")
		}
	}
}

// TestMakersMatchTheirTypes checks the jobs that create input files for other jobs
// against the algorithm files of their types.
func TestMakersMatchTheirTypes(t *testing.T) {
	all, seen := catalogueOf(t), 0
	for _, a := range all {
		for _, p := range a.Parameters {
			m := p.Maker
			if m == nil {
				continue
			}
			seen++
			i := slices.IndexFunc(all, func(other *algorithm.File) bool { return other.Type == m.Type })
			if i < 0 {
				t.Errorf("%s: there is no type %s", a.Type, m.Type)
				continue
			}
			if o := all[i].Outputs.Named(m.Output); o == nil || !p.CouldAccept(o.File) {
				t.Errorf("%s: %s does not take the output %s of %s", a.Type, p.Name, m.Output, m.Type)
			}
			settings := strictjson.Value{Kind: strictjson.Object, Members: slices.Clone(m.Settings)}
			for _, f := range m.Files {
				settings.Members = append(settings.Members, strictjson.Member{Name: f.Setting, Value: &strictjson.Value{Kind: strictjson.String, Text: "a/b.fasta"}})
			}
			if _, faults := all[i].CheckSettings(&settings); len(faults) > 0 {
				t.Errorf("%s: settings of %s: %v", a.Type, m.Type, faults)
			}
		}
	}
	if seen < 4 {
		t.Errorf("only %d files are made by other jobs", seen)
	}
}

// TestTableOfTypes checks web/docs/types.md against the catalogue and its bad inputs.
func TestTableOfTypes(t *testing.T) {
	page := must.Read(t, "../../../web/docs/types.md")
	rows := strings.Count(page, "\n| `")
	for _, a := range catalogueOf(t) {
		bad, _ := os.ReadFile("../../test/e2e/testdata/bad/" + a.Type + ".toml") // not every type has one
		run, inputs := "real", strconv.Itoa(bytes.Count(bad, []byte("[[bad]]")))
		if a.Status != "" {
			run = "stand-in"
		}
		row := regexp.MustCompile(fmt.Sprintf(`\n\| %s \| %s \| [^|]+ \| %s \| %s \|\n`, regexp.QuoteMeta("`"+a.Type+"`"), regexp.QuoteMeta(a.Version), run, inputs))
		if !row.MatchString(page) {
			t.Errorf("web/docs/types.md has no row of %s, version %s, %s, with %s inputs", a.Type, a.Version, run, inputs)
		}
		rows--
	}
	if rows != 0 {
		t.Errorf("web/docs/types.md has %d rows too many", rows)
	}
}

// TestOwnReadersTakeTextOfAllSystems checks which types accept files with a byte order
// mark or classic Mac line endings: the types whose files are read by molrun or by
// scripts of the catalogue.
func TestOwnReadersTakeTextOfAllSystems(t *testing.T) {
	builtin, err := BuiltIn()
	must.OK(t, err)
	takes := map[string]bool{}
	for _, a := range slices.Concat(builtin, catalogueOf(t)) {
		for _, p := range a.Parameters.Files() {
			takes[a.Type+" "+p.Name] = p.Content() != nil && p.Content().AcceptsTextVariants
		}
	}
	for setting, want := range map[string]bool{
		"structure-summary structure": true, "sequence-properties fasta": true, "gromacs structure": true, "mustang structures": true,
		"boltz proteins": true, "vina ligands": true, "tm-align mobile": true, "contacts structure": false, "blastp query": false,
	} {
		if got, there := takes[setting]; got != want || !there {
			t.Errorf("%s: %v, %v", setting, got, there)
		}
	}
}

// pdbCall matches the calls in commands and scripts that convert a user's structure to a
// PDB file.
var pdbCall = regexp.MustCompile(`"engine", "pdb",\s+"--structure", (?:"\{files\.\w+\}"|file|str\(file\)),([^\]]*?(?:\[[^\]]*\][^\]]*?)?)"--out"`)

// TestTypesThatNeedPDBFilesSaySo compares the options of `molrun engine pdb` in the
// commands of types with those declared for the check at submission.
func TestTypesThatNeedPDBFilesSaySo(t *testing.T) {
	needing := 0
	for _, a := range catalogueOf(t) {
		found, said := map[structure.Selection]bool{}, map[structure.Selection]bool{}
		must.OK(t, fs.WalkDir(folderOf(a.Type), ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := fs.ReadFile(folderOf(a.Type), path)
			for _, call := range pdbCall.FindAllStringSubmatch(string(text), -1) {
				found[selection(call[1])] = true
				if before, _, conditional := strings.Cut(call[1], "{ if"); conditional {
					found[selection(before)] = true
				}
			}
			return err
		}))
		for _, p := range a.Parameters.Files() {
			for _, leave := range cmp.Or(p.Content(), &content.Want{}).PDB {
				said[leave] = true
			}
		}
		must.Equal(t, a.Type, said, found)
		if len(said) > 0 {
			needing++
		}
	}
	if needing < 17 {
		t.Errorf("only %d types need PDB files", needing)
	}
}

func selection(text string) (leave structure.Selection) {
	for _, option := range structure.Options {
		*leave.Option(option) = strings.Contains(text, `"--`+option+`"`)
	}
	return leave
}

// TestProgramsThatNeedSideChainsAreGivenThem submits a structure with backbone atoms
// only.
func TestProgramsThatNeedSideChainsAreGivenThem(t *testing.T) {
	var text strings.Builder
	for line := range strings.Lines(must.Read(t, "examples/lysozyme.pdb")) {
		if strings.HasPrefix(line, "ATOM") && strings.Contains(" N   CA  C   O  ", line[12:16]) {
			text.WriteString(line)
		}
	}
	file := filepath.Join(t.TempDir(), "backbone.pdb")
	must.Write(t, file, text.String())
	needing := strings.Fields("autodock4 dssp electrostatics freesasa gromacs plip propka vina")
	for _, a := range catalogueOf(t) {
		if !slices.Contains(needing, a.Type) {
			continue
		}
		name := "structure"
		if a.Parameters.Named(name) == nil {
			name = "receptor"
		}
		row := algorithm.ValidatorRow{
			Settings: parsed(t, `{"`+name+`":"inputs/backbone.pdb"}`), Right: true, Facts: algorithm.Facts{},
			Paths: algorithm.Paths{Files: map[string][]string{name: {file}}},
		}
		faults, err := a.RunValidator(t.Context(), validator.NewPool(validator.PoolOptions{}), "ann", []algorithm.ValidatorRow{row})
		if err != nil || !slices.ContainsFunc(faults[0], func(f fault.Field) bool { return f.Loc[0] == name && strings.Contains(f.Msg, "side chains") }) {
			t.Errorf("%s: %v, %v", a.Type, faults, err)
		}
	}
}

func TestScriptsReadTextOfAllSystems(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		must.Write(t, path, text)
		return path
	}
	run := func(script string, args ...string) {
		t.Helper()
		if said, ok := runScript(t, script, args...); !ok {
			t.Errorf("%s: %s", script, said)
		}
	}
	settings, fasta, target := write("settings.json", `{"seed": 1, "seeds": 1}`), filepath.Join(dir, "a.fasta"), filepath.Join(dir, "complex")
	for script, args := range map[string][]string{
		"boltz/complex.py":      {settings, target, "--proteins", fasta},
		"chai-1/complex.py":     {settings, target, "--proteins", fasta},
		"alphafold3/complex.py": {settings, target, "--proteins", fasta},
		"esmfold/sequences.py":  {fasta, target, filepath.Join(dir, "names.csv")},
	} {
		for _, text := range []string{
			"\uFEFF>a\rMKV\rLAA\r\n>b\rGG\r", "\xff\xfe>\x00a\x00\n\x00M\x00K\x00V\x00L\x00A\x00A\x00\n\x00>\x00\n\x00G\x00G\x00",
			">prot\xe9ine\nmkv laa*\n;x\n >b\nGG", "MKVLAAGG",
		} {
			write("a.fasta", text)
			run(script, args...)
			if text, err := os.ReadFile(target); err != nil || !bytes.Contains(text, []byte("MKVLAA")) || !bytes.Contains(text, []byte("GG")) || bytes.Contains(text, []byte("*")) {
				t.Errorf("%s: %s, %v", script, text, err)
			}
		}
	}
	run("contacts/cell.py", write("a.cif", "data_x\n_CELL.Length_A 12.5\n"))
}

// TestTablesOfMoleculesAreReadAsSpreadsheetsSaveThem uses a stand-in for RDKit.
func TestTablesOfMoleculesAreReadAsSpreadsheetsSaveThem(t *testing.T) {
	must.Installed(t, "python3")
	dir := t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(dir, "rdkit"), 0o700))
	must.OK(t, os.WriteFile(filepath.Join(dir, "rdkit", "__init__.py"), []byte(`
class RDLogger: DisableLog = staticmethod(lambda _: None)
class Molecule: GetNumAtoms = lambda _: 1
class Chem: MolFromSmiles = staticmethod(lambda smiles: Molecule() if smiles in ("CCO", "C") else None)
`), 0o600))
	const script = `import sys, molecules; print([(name, type(m).__name__) for name, m in molecules.read("file", sys.argv[1])])`
	for name, text := range map[string]string{
		"comma.csv": "name,smiles\né,CCO\nb,C\n", "semicolon.csv": "Name;SMILES\r\né;CCO\r\nb;C\r\n", "said.csv": "sep=;\nsmiles;name\nCCO;é\nC;b\n",
		"windows.csv": "name;smiles\n\xe9;CCO\nb;C\n", "marked.csv": "\uFEFFname,smiles\ré,CCO\rb,C\r", "tabs.tsv": "name\tsmiles\né\tCCO\nb\tC\n",
		"wide.csv": "\xff\xfen\x00a\x00m\x00e\x00\t\x00s\x00m\x00i\x00l\x00e\x00s\x00\n\x00\xe9\x00\t\x00C\x00C\x00O\x00\n\x00b\x00\t\x00C\x00", "lines.smi": "CCO é\r\n# none\r\nC b\r\n",
	} {
		path := filepath.Join(dir, name)
		must.Write(t, path, text)
		c := exec.CommandContext(t.Context(), "python3", "-c", script, path)
		c.Env = append(os.Environ(), "PYTHONPATH="+dir+":catalogue/lib", "PYTHONIOENCODING=utf-8", "PYTHONDONTWRITEBYTECODE=1")
		if out, err := c.CombinedOutput(); err != nil || string(out) != "[('é', 'Molecule'), ('b', 'Molecule')]\n" {
			t.Errorf("%s: %s, %v", name, out, err)
		}
	}
}

// references returns the files that a setting refers to: none, one or several.
func references(setting *strictjson.Value) (all []string) {
	if setting == nil {
		return nil
	}
	for _, item := range setting.Items {
		all = append(all, item.Text)
	}
	if setting.Kind == strictjson.String {
		all = append(all, setting.Text)
	}
	return all
}

// TestExamplesOfTheCatalogueAreSubmissions validates each example as a submission.
func TestExamplesOfTheCatalogueAreSubmissions(t *testing.T) {
	for _, a := range catalogueOf(t) {
		if a.Example == nil {
			continue
		}
		settings, err := strictjson.Parse(a.Example.Settings)
		must.OK(t, err)
		if _, faults := a.CheckSettings(settings); faults != nil {
			t.Errorf("%s: %v", a.Path, faults)
		}
		dir := t.TempDir()
		var used []string
		for _, p := range a.Parameters.Files() {
			for _, reference := range references(settings.Member(p.Name)) {
				name, ok := strings.CutPrefix(reference, "example:")
				if !ok {
					t.Errorf("%s: %s comes from elsewhere", a.Path, reference)
				}
				text, err := a.Folder.ReadFile(folder.Examples + "/" + name)
				must.OK(t, err)
				path := filepath.Join(dir, name)
				must.OK(t, os.WriteFile(path, text, 0o600))
				used = append(used, name)
				if want := p.Content(); want != nil {
					if found, err := content.CheckFile(t.Context(), path, *want); err != nil || found.Mistakes != nil {
						t.Errorf("%s: %s: %+v, %v", a.Path, name, found, err)
					}
				}
			}
		}
		for _, name := range a.Folder.Under(folder.Examples) {
			if !slices.Contains(used, name) {
				t.Errorf("%s: no setting of the example reads %s", a.Path, name)
			}
		}
	}
}

// Vina 1.2 used 0.6 GiB for a ligand of 41 atoms, 2.0 GiB for 83 and 5.2 GiB for 132.
// These counts include polar hydrogens, and are about 1.3 times the number of heavy
// atoms.
func TestVinaReservesMemoryForTheLargestLigand(t *testing.T) {
	all := catalogueOf(t)
	vina := all[slices.IndexFunc(all, func(a *algorithm.File) bool { return a.Type == "vina" })]
	chain := func(heavy int) string { return "N[C@@H](C)C(=O)" + strings.Repeat("O", heavy-5) }
	gibibytes := func(settings string, facts algorithm.Facts) float64 {
		t.Helper()
		needs, faults := vina.Needs(parsed(t, settings), facts)
		if faults != nil {
			t.Fatal(faults)
		}
		return float64(needs.MemoryBytes) / (1 << 30)
	}
	for heavy, want := range map[int][2]float64{8: {1, 1}, 32: {1, 2}, 63: {2, 4}, 100: {5.2, 8}, 300: {5.2, 8}} { // ligands with more than 100 heavy atoms are not docked
		file := filepath.Join(t.TempDir(), "ligands.csv")
		must.Write(t, file, "name,smiles\n"+strings.Repeat("a,CCO\n", 500)+"b,"+chain(heavy)+"\nc,C1C(\n")
		found, err := content.CheckFile(t.Context(), file, *vina.Parameters.Named("ligands").Content())
		must.OK(t, err)
		if found.Mistakes != nil {
			t.Fatal(found.Mistakes)
		}
		table := gibibytes(`{"cores":1,"ligands":"x"}`, algorithm.Facts{"ligands": found.Facts})
		if table < want[0] || table > want[1] {
			t.Errorf("%d heavy atoms: %.2f GiB, want %v", heavy, table, want)
		}
		must.Equal(t, fmt.Sprintf("%d heavy atoms", heavy), gibibytes(`{"cores":1,"smiles":"`+chain(heavy)+`"}`, nil), table)
	}
	if later := gibibytes(`{"cores":1,"ligands":"job:a/b.sdf"}`, nil); later < 2 || later > 4 {
		t.Errorf("a file that is not made yet: %.2f GiB", later)
	}
}

func TestOfferedTypesOfTheCatalogue(t *testing.T) {
	types := func(offered ...string) string {
		t.Helper()
		c, err := Catalogue("", offered, nil)
		must.OK(t, err)
		return strings.Join(c.Types(), " ")
	}
	if got := types(All); !strings.Contains(got, "cg-idp") || !strings.Contains(got, "tm-align") {
		t.Errorf("all: %s", got)
	}
	alone := types(None)
	if strings.Contains(alone, "tm-align") || !strings.Contains(alone, "cg-idp") || types() != alone {
		t.Errorf("none: %s, %s", alone, types())
	}
	must.Equal(t, "one", types("tm-align"), alone+" tm-align")
	for name, says := range map[string]string{"tm-aling": `did you mean "tm-align"`, "zzzzzzzzz": "use all, none, "} {
		must.Fail(t, name, must.Error2(Catalogue("", []string{name}, nil)), says)
	}
}

func TestSiteTakesThePlaceOfATypeOfTheCatalogue(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "mine")
	write := func(name, text string) {
		t.Helper()
		must.Write(t, name, text)
	}
	for _, folder := range []string{own, filepath.Join(dir, "wrong"), filepath.Join(dir, "notes"), filepath.Join(dir, ".git")} {
		must.OK(t, os.Mkdir(folder, 0o700))
		write(filepath.Join(folder, "a.txt"), "x")
	}
	write(filepath.Join(own, folder.Main), "format = 1\ntype = \"tm-align\"\nversion = \"own\"\ncommand = [\"true\"]\n")
	write(filepath.Join(dir, "wrong", "vina.toml"), "format = 1\n")
	var mistakes []string
	c, err := Catalogue(dir, []string{All}, func(m algorithm.Mistake) { mistakes = append(mistakes, m.String()) })
	must.OK(t, err)
	must.Equal(t, "versions", c.VersionNames("tm-align"), []string{"own"})
	if a, _ := c.Find("tm-align", ""); a.BuiltIn || a.Path != filepath.Join(own, folder.Main) || !a.Folder.Has("a.txt") {
		t.Errorf("%+v", a)
	}
	if len(mistakes) != 1 || !strings.Contains(mistakes[0], "must be named algorithm.toml") {
		t.Errorf("mistakes %q", mistakes)
	}
}

// A site's file with an error hides the catalogue's type, because running the catalogue's
// algorithm might not be what the site intends.
func TestInvalidSiteFileHidesCatalogueType(t *testing.T) {
	for name, text := range map[string]string{
		"vina.toml":            "format = 1\ntype = \n",
		"other.toml":           "format = 1\ntype = \"vina\"\nversion = \"1\"\ncomand = [\"true\"]\n",
		"vina/algorithm.toml":  "format = 1\n",
		"docks/algorithm.toml": "# ours\ntype = 'vina'\nformat = 9\n",
	} {
		dir := t.TempDir()
		must.OK(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		must.Write(t, filepath.Join(dir, name), text)
		c, err := Catalogue(dir, []string{All}, func(algorithm.Mistake) {})
		must.OK(t, err)
		a, ok := c.Find("vina", "")
		if !ok {
			t.Fatal("vina is gone")
		}
		missing := a.Missing(placement.Machine{Local: true})
		if len(missing) != 1 || !strings.Contains(missing[0], "the site's own "+filepath.Base(name)+" has an error in line ") {
			t.Errorf("%s: vina lacks %q", name, missing)
		}
		other, _ := c.Find("tm-align", "")
		if got := other.Missing(placement.Machine{}); strings.Contains(strings.Join(got, ""), "has an error") {
			t.Errorf("%s: tm-align lacks %q", name, got)
		}
	}
}
