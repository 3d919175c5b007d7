package files

import (
	"context"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"molrun/app/algorithm"
	"molrun/app/algorithm/builtin"
	"molrun/app/algorithm/content"
	"molrun/app/algorithm/fanout"
	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
	"molrun/app/base/structure"
	"molrun/app/base/tables"
	"molrun/app/engine/cgidp"
	"molrun/app/engine/seqprop"
	"molrun/app/engine/structsum"
	"molrun/app/test/must"
)

// types returns the catalogue with all built-in types.
func types(t *testing.T) *algorithm.Catalogue {
	t.Helper()
	all, err := builtin.Catalogue("", []string{builtin.All}, func(m algorithm.Mistake) { t.Error(m) })
	must.OK(t, err)
	return all
}

func contentOf(all *algorithm.Catalogue, setting string) *content.Want {
	typ, name, _ := strings.Cut(setting, ".")
	a, _ := all.Find(typ, "")
	return a.Parameters.Named(name).Content()
}

// checkReport returns the submission check's report on a file for a setting such as
// dssp.structure. It does not apply the setting's size limits.
func checkReport(t *testing.T, all *algorithm.Catalogue, setting, text string) *content.Report {
	t.Helper()
	want := *contentOf(all, setting)
	want.MinResidues, want.MaxResidues, want.MaxAtoms = 0, 0, 0
	path := filepath.Join(t.TempDir(), "file")
	must.Write(t, path, text)
	report, err := content.CheckFile(t.Context(), path, want)
	must.OK(t, err)
	return report
}

// TestAStructureHasOneVerdict compares what the check, an engine, `molrun engine pdb` and
// catalogue types report for a file: its content, or the error in it. PDB files cannot
// represent all content; types that are given a PDB file must then report the same error
// as `molrun engine pdb`.
func TestAStructureHasOneVerdict(t *testing.T) {
	all := types(t)
	texts := map[string]string{}
	for _, path := range stored(t) {
		texts[path] = must.Read(t, path)
	}
	made := maker(t)
	for number := range 40 {
		s := made(number)
		texts[s.name+" "+strings.Join(s.how, ", ")] = string(s.text)
	}
	pdb, cif := must.Read(t, "testdata/content.pdb"), must.Read(t, "testdata/same-unwrapped.cif")
	wrong := map[string]string{ // by a part of the error message
		"has a tab in line 2":                               strings.Replace(pdb, "ATOM      2 ", "ATOM\t    2 ", 1),
		"has leading blanks before the atom in line 1":      " " + pdb,
		"has its columns shifted by one in line 2":          strings.Replace(pdb, "CA  ASP", "CA ASP", 1),
		"is truncated in line 2":                            pdb[:strings.Index(pdb, "CA ")],
		"has atoms after END in line 97":                    pdb + strings.ReplaceAll(pdb, "ASP A   1", "GLY A  99"),
		"has no valid residue number in columns 23 to 26":   strings.Replace(pdb, "ASP A   1 ", "ASP A  *1 ", 1),
		"has no valid coordinate in columns 31 to 38":       strings.Replace(pdb, "   1.381", "     nan", 1),
		"has no valid coordinate Cartn_x":                   strings.Replace(cif, "1.381", "?", 1),
		"has a second table of atoms":                       cif + strings.Replace(cif, "data_model", "data_other", 1),
		"is truncated in line 118: its last atom":           cif[:strings.LastIndex(cif, " ")],
		"has an unclosed quote in line":                     strings.Replace(cif, " ASP ", " 'ASP ", 1),
		"has the column cartn_x twice":                      strings.Replace(cif, "Cartn_y", "CARTN_X", 1),
		"is truncated: the text that starts with ; in line": cif + "_struct.title\n;x\n",
		"is truncated in line 55":                           must.Read(t, "testdata/model.pdb.gz")[:900],
	}
	maps.Copy(texts, wrong)
	for old, long := range map[string]string{" SER 2 2 ": " SER 2 10002 ", " A SER": " A SER12", " 1.38106 ": " 12345.6 "} {
		texts["mmCIF with"+long] = strings.ReplaceAll(cif, old, long)
	}
	texts["a hole"] = regexp.MustCompile(`ATOM  (.{11})HIS A   3`).ReplaceAllString(pdb, "HETATM${1}XYZ A   3")
	for name, text := range texts {
		report := checkReport(t, all, "structure-summary.structure", text)
		verdict := strings.Join(report.Mistakes, "; ")
		if (wrong[name] == "") != (verdict == "") || verdict != "" && !strings.Contains(verdict, name) {
			t.Errorf("%s: %q, %q", name, verdict, report.Summary)
		}
		for _, setting := range []string{"freesasa.structure", "dssp.structure", "vina.receptor", "pdbfixer.structure"} {
			other, want := checkReport(t, all, setting, text), verdict
			for k, leave := range contentOf(all, setting).PDB {
				_, err := structure.WritePDB(strings.NewReader(text), io.Discard, leave)
				if k == 0 {
					want = sentence(err, "")
				}
				if err == nil {
					want = ""
				}
			}
			if strings.Join(other.Mistakes, "; ") != want || other.Summary != report.Summary {
				t.Errorf("%s: %q, %q, for %s %q, %q", name, want, report.Summary, setting, other.Mistakes, other.Summary)
			}
		}
		if err := structsum.Run(t.Context(), strings.NewReader(text), 4.5, t.TempDir(), io.Discard); sentence(err, "the structure ") != verdict {
			t.Errorf("%s: %q, the engine has %v", name, verdict, err)
		}
	}
}

// sentence returns an error message without its prefix.
func sentence(err error, before string) string {
	if err == nil {
		return ""
	}
	return strings.TrimPrefix(err.Error(), before)
}

// one is a file that every reference refers to.
type one string

func (one) List(context.Context, string) (map[string]bool, error) { return nil, nil }
func (o one) Read(context.Context, string) ([]byte, error)        { return []byte(o), nil }
func (one) Reserve(int64) error                                   { return nil }

func expanded(t *testing.T, all *algorithm.Catalogue, request, text string) (int, []fault.Field) {
	t.Helper()
	v, err := strictjson.Parse([]byte(request))
	must.OK(t, err)
	r, faults := fanout.ReadRequest(v)
	must.Equal(t, "faults", faults, nil)
	a, _ := all.Find("sequence-properties", "")
	rows, faults, err := fanout.Expand(t.Context(), r, "b", a, one(text), 100)
	must.OK(t, err)
	if rows == nil {
		return 0, faults
	}
	for _, row := range rows.Settings {
		if _, wrong := a.CheckSettings(row); row != nil {
			faults = append(faults, wrong...)
		}
	}
	return len(rows.Settings), faults
}

// TestSequencesHaveOneVerdict compares the number of sequences that the check, engines,
// fan-out and catalogue types find in a file. They must agree, or all reject the file.
func TestSequencesHaveOneVerdict(t *testing.T) {
	all := types(t)
	const hst5, other = "DSHAKRHHGYKRKFHEKHHSHRGY", "MKLAAGGHHEED"
	for name, tt := range map[string]struct {
		text string
		want int // 0 means that the file is rejected
	}{
		"FASTA":                {">a b\n" + hst5 + "\n>c\n" + other + "\n", 2},
		"old Macs":             {">a\r" + hst5 + "\r>b\r" + other + "\r", 2},
		"mixed ends of lines":  {">a\r\n" + hst5 + "\r\n>b\r" + other + "\r", 2},
		"byte order mark":      {"\uFEFF>a\n" + hst5 + "\n", 1},
		"UTF-16":               {"\xff\xfe>\x00a\x00\n\x00M\x00K\x00V\x00M\x00K\x00", 1},
		"no header":            {hst5 + "\n", 1},
		"no header, wrapped":   {strings.Repeat(hst5, 2) + "\n" + other + "\n", 1},
		"no header, two lines": {hst5 + "\n" + other + "\n", 0},
		"text before":          {hst5 + "\n>b\n" + other + "\n", 0},
		"lower case":           {">a\n" + strings.ToLower(hst5) + "\n", 1},
		"> in the header":      {">A <B> >C\n" + hst5 + "\n", 1},
		"Windows-1252":         {">Hst5 prot\xe9ine\n" + hst5 + "\n", 1},
		"Greek, and no width":  {">α-synuclein|\u200b type\n" + hst5 + "\n", 1},
		"header of 270 kB":     {">" + strings.Repeat("x", 270_000) + "\n" + hst5 + "\n", 1},
		"blanks and comments":  {"; note\n\n> a\n DSHAK\tRHHGY\n;x\n\n", 1},
		"a stop at the end":    {">a\n" + other + "*\n", 1},
		"a colon":              {">a\n" + hst5 + ":" + other + "\n", 0},
		"gaps":                 {">a\nMK-LAA\n", 0},
		"A3M of a complex":     {"#24,12\t1,1\n>101\t102\n" + hst5 + other + "\n>hit1\n" + hst5 + "------------\n", 0},
		"a letter of Windows":  {">a\nMK\xe9\n", 0},
		"a digit":              {">a\nMKV1\n", 0},
		"no sequence":          {">a\n>b\n" + hst5 + "\n", 0},
		"nothing":              {"\n", 0},
		"names of NCBI's nr":   {">NP_1.1 a\x01XP_2.1 b\n" + hst5 + "\n>c\n" + other + "\n", 2},
		"a form feed":          {">a\n" + hst5 + "\f\n>b\n" + other + "\n", 2},
		"a control character":  {">a\nMK\x00V\n", 0},
	} {
		for _, setting := range []string{"sequence-properties.fasta", "esmfold.sequences", "chai-1.proteins"} {
			r := checkReport(t, all, setting, tt.text)
			if got := int(r.Facts["records"]); len(r.Mistakes) > 0 != (tt.want == 0) || tt.want > 0 && got != tt.want {
				t.Errorf("%s: the check for %s has %d, %q, want %d", name, setting, got, r.Mistakes, tt.want)
			}
		}
		if err := seqprop.Run(t.Context(), []byte(tt.text), seqprop.Options{PH: 7, Window: 9}, t.TempDir(), io.Discard); err != nil && tt.want > 0 {
			t.Errorf("%s: the engine has %v, want %d", name, err, tt.want)
		}
		if faults := cgidp.Check([]byte(`{"fasta":"x","steps":1000}`), []byte(tt.text)); len(faults) > 0 != (tt.want == 0) {
			t.Errorf("%s: cg-idp has %v, want %d", name, faults, tt.want)
		}
		if n, faults := expanded(t, all, `{"each":{"sequence":"fasta:p"}}`, tt.text); len(faults) > 0 != (tt.want == 0) || tt.want > 0 && n != tt.want {
			t.Errorf("%s: fan-out has %d, %v, want %d", name, n, faults, tt.want)
		}
	}
}

// TestTablesHaveOneVerdict compares the numbers of rows that the check and fan-out find
// in a table that the check accepts.
func TestTablesHaveOneVerdict(t *testing.T) {
	for name, text := range map[string]string{
		"CSV":             "a,b\n1,2\n3,4\n",
		"byte order mark": "\uFEFFa,b\r\n1,2\r\n3,4\r\n",
		"semicolons":      "a;b\r\n7,4;2\r\n6,5;4\r\n",
		"sep=":            "sep=;\r\na;b\r\n7,4;2\r\n6,5;4\r\n",
		"old Macs":        "a,b\r1,2\r3,4\r",
		"mixed":           "a,b\r\n1,2\n3,4\r",
		"quotes":          "a,b\n\"d \"\"1\"\"\",2\n\"x\ny\",4\n",
		"empty columns":   "a,b,,\n1,2,,\n3,4,,\n",
		"Windows-1252":    "a,b\nKr\xfcger,2\n3,4\n",
		"UTF-16":          "\xff\xfea\x00,\x00b\x00\n\x001\x00,\x002\x00\n\x003\x00,\x004\x00\n\x00",
	} {
		path := filepath.Join(t.TempDir(), "file.csv")
		must.Write(t, path, text)
		r, err := content.CheckFile(t.Context(), path, content.Want{Kind: content.Table})
		must.OK(t, err)
		sheet := tables.ReadSheet([]byte(text), false, 100)
		if len(sheet.Rows) != 2 || len(r.Mistakes) == 0 && r.Facts["records"] != 2 {
			t.Errorf("%s: the check has %v, %q, the sheet %d", name, r.Facts, r.Mistakes, len(sheet.Rows))
		}
	}
}
