package fanout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"molrun/app/algorithm"
	"molrun/app/base/fault"
	"molrun/app/base/naming"
	"molrun/app/base/strictjson"
	"molrun/app/test/must"
)

const dockFile = `
format = 1
type = "dock"
version = "1"
title = "Dock"
command = ["true"]

[[parameters]]
name = "ligand"
file = [".sdf", ".sdf.gz"]

[[parameters]]
name = "sequences"
type = ["array", "string"]
items = { type = "string", pattern = "^[A-Z]+$" }

[[parameters]]
name = "sequence"
type = "string"
maxLength = 20

[[parameters]]
name = "count"
type = "integer"
minimum = 1

[[parameters]]
name = "size"
type = "number"

[[parameters]]
name = "fast"
type = "boolean"

[[parameters]]
name = "mode"
enum = ["1", "2", "slow"]

[[parameters]]
name = "box"
type = "array"
items = { type = "number" }

[[parameters]]
name = "either"
type = ["string", "integer"]
`

func dock(t testing.TB) *algorithm.File {
	t.Helper()
	a, mistakes := algorithm.Parse("dock.toml", []byte(dockFile))
	for _, m := range mistakes {
		t.Fatal(m)
	}
	return a
}

// texts maps references to file contents. A name that ends with a slash is a folder.
type texts map[string]string

func (t texts) List(_ context.Context, folder string) (map[string]bool, error) {
	completed := map[string]bool{}
	for _, name := range strings.Fields(t[folder+"/"]) {
		completed[name] = true
	}
	return completed, nil
}

func (t texts) Read(_ context.Context, ref string) ([]byte, error) {
	text, ok := t[ref]
	if !ok {
		return nil, fault.Errorf(fault.Invalid, "there is no %s", ref)
	}
	return []byte(text), nil
}

func (t texts) Reserve(int64) error { return nil }

// expand returns the jobs of a request, their settings, and the errors as text.
func expand(t *testing.T, files texts, request string) (*Rows, []string, []string) {
	t.Helper()
	v, err := strictjson.Parse([]byte(request))
	must.OK(t, err)
	r, faults := ReadRequest(v)
	if faults != nil {
		t.Fatal(faults)
	}
	rows, faults, err := Expand(t.Context(), r, "b", dock(t), files, 100)
	must.OK(t, err)
	var settings []string
	if rows != nil {
		for _, v := range rows.Settings {
			if v == nil {
				settings = append(settings, "")
				continue
			}
			if !json.Valid(v.Raw) {
				t.Errorf("the settings %s are not JSON", v.Raw)
			}
			settings = append(settings, string(v.AppendCanonical(nil)))
		}
	}
	return rows, settings, sentences(faults)
}

func sentences(faults []fault.Field) (all []string) {
	for _, f := range faults {
		all = append(all, fmt.Sprint(f.Loc, ": ", f.Msg))
	}
	return all
}

func TestCellsBecomeWhatTheParameterTakes(t *testing.T) {
	a := dock(t)
	for _, tt := range []struct{ parameter, text, want string }{
		{"count", "5", "5"},
		{"count", "1e1", "10"},
		{"count", "1.5", "15e-1"}, // a number, so that the error says it is not an integer
		{"count", "0", "0"},
		{"count", "five", `"five"`},
		{"count", "+5", `"+5"`},
		{"size", "-0.5e-05", "-5e-6"},
		{"size", "NaN", `"NaN"`},
		{"size", "1" + strings.Repeat("0", 100), `"1` + strings.Repeat("0", 100) + `"`},
		{"fast", "TRUE", "true"},
		{"fast", "false", "false"},
		{"fast", "1", "1"},
		{"mode", "1", `"1"`},
		{"mode", "slow", `"slow"`},
		{"mode", "3", "3"},
		{"sequence", "5", `"5"`},
		{"sequence", "true", `"true"`},
		{"sequence", `{"a":1}`, `{"a":1}`[:0] + `"{\"a\":1}"`},
		{"sequence", "null", `"null"`},
		{"sequence", strings.Repeat("1", 21), `"` + strings.Repeat("1", 21) + `"`}, // an overlong text, not a number
		{"box", "[1, 2.0]", "[1,2]"},
		{"box", "[1,", `"[1,"`},
		{"either", "7", "7"},
		{"either", "x", `"x"`},
		{"ligand", "12", `"12"`},
	} {
		v := a.Parameters.Named(tt.parameter).FromText(tt.text)
		must.Equal(t, tt.parameter+" "+tt.text, string(v.AppendCanonical(nil)), tt.want)
		if !json.Valid(v.Raw) {
			t.Errorf("%s %s: the bytes %s are not JSON", tt.parameter, tt.text, v.Raw)
		}
	}
}

func TestRecordsBecomeSequences(t *testing.T) {
	files := texts{"p.fa": "\ufeff; a comment\r\n>P1 Human protein\r\nmk v\r\nLAA*\r\n\r\n>sp|Q2|X_Y\nGGG\n;more\nA\n>p1\nA"}
	rows, settings, faults := expand(t, files, `{"each":{"sequences":"fasta:p.fa"},"settings":{"count":3}}`)
	must.Equal(t, "faults", faults, nil)
	must.Equal(t, "rows", settings, []string{
		`{"count":3,"sequences":["MKVLAA"]}`, `{"count":3,"sequences":["GGGA"]}`, `{"count":3,"sequences":["A"]}`,
	})
	must.Equal(t, "sources", rows.Sources, []string{"P1", "sp|Q2|X_Y", "p1"})
	must.Equal(t, "names", rows.Names, []string{"b-P1", "b-sp_Q2_X_Y", "b-p1"})
	_, settings, _ = expand(t, files, `{"each":{"sequence":"fasta:p.fa"}}`)
	must.Equal(t, "a parameter of one text", settings[1], `{"sequence":"GGGA"}`)
	f, isNew := rows.LocateFault(1, fault.Field{Loc: []any{"sequences", 0}, Msg: "must be a protein"})
	must.Equal(t, "a fault", []any{f.Loc, f.Msg, isNew}, []any{[]any{"fanOut", "each", "sequences"}, "sp|Q2|X_Y: must be a protein", true})
}

func TestInvalidRecordsAreReported(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"", []string{"[fanOut each sequence]: the file has no records; a record begins with a line such as >P04637"}},
		{"; nothing\n\n", []string{"[fanOut each sequence]: the file has no records; a record begins with a line such as >P04637"}},
		{"MKV\nLA\n>a\nM\n", []string{"[fanOut each sequence 1]: line 1: the file has text before the first header, \"MKVLA\"; add a header (a line \">name\") or remove it"}},
		{"MKV\nLA\nGGGG\n", []string{"[fanOut each sequence 1]: line 1: the file has 3 lines but no header, so these could be several sequences; put a line \">name\" before each sequence"}},
		{">a\nMK--V\n>b\nMKkkLV\n", []string{"[fanOut each sequence 1]: line 1: the record \"a\" has alignment gaps (aligned FASTA, A2M, A3M), but a job needs a plain sequence: remove the gaps"}},
		{">a\n>b\nM\n>\nM\n>b x\nK\n", []string{
			`[fanOut each sequence 1]: line 1: the record "a" has no sequence`,
			`[fanOut each sequence 6]: line 6: the record "b" occurs twice, first in line 2`,
		}},
		{">a\x01b\nM\x00\n", []string{"[fanOut each sequence 2]: line 2: the text has the control character U+0000; is this a text file?"}},
		{">a\nM\x00\n", []string{"[fanOut each sequence 2]: line 2: the text has the control character U+0000; is this a text file?"}},
		{strings.Repeat(">a\n", 1), []string{`[fanOut each sequence 1]: line 1: the record "a" has no sequence`}},
	} {
		_, _, faults := expand(t, texts{"p": tt.text}, `{"each":{"sequence":"fasta:p"}}`)
		must.Equal(t, fmt.Sprintf("%.40q", tt.text), faults, tt.want)
	}
}

func TestLineEndings(t *testing.T) {
	text := "count,sequence\n1,\"a\nb\"\n\n2,c"
	for _, text := range []string{
		text, strings.ReplaceAll(text, "\n", "\r\n"), strings.ReplaceAll(text, "\n", "\r"),
		strings.Replace(strings.ReplaceAll(text, "\n", "\r"), "\r", "\r\n", 1), strings.Replace(text, "\n", "\r", 2),
	} {
		rows, settings, faults := expand(t, texts{"t": text}, `{"each":{"*":"csv:t"}}`)
		must.Equal(t, "faults", faults, nil)
		must.Equal(t, "rows", settings, []string{`{"count":1,"sequence":"a\u000ab"}`, `{"count":2,"sequence":"c"}`})
		must.Equal(t, "sources", rows.Sources, []string{"line 2", "line 5"})
	}
}

func TestSeparatorsAreFoundInTheFirstLine(t *testing.T) {
	for text, want := range map[string]string{
		"count,sequence\n1,a;b\n":           `{"count":1,"sequence":"a;b"}`,
		"count;sequence\n1;\"a,b\"\n":       `{"count":1,"sequence":"a,b"}`,
		"\n\ncount\tsequence\n1\ta,b\n":     `{"count":1,"sequence":"a,b"}`,
		"sequence\na;b\n":                   `{"sequence":"a;b"}`,
		"count , sequence\n 1 ,  \"a\"\n":   `{"count":1,"sequence":"a"}`,
		"count\tsequence\tsize\n1\t\t2\n":   `{"count":1,"size":2}`,
		"count,sequence\n1,\"a \"\"b\"\"\"": `{"count":1,"sequence":"a \"b\""}`,
	} {
		_, settings, faults := expand(t, texts{"t": text}, `{"each":{"*":"csv:t"}}`)
		must.Equal(t, text+" faults", faults, nil)
		must.Equal(t, text, settings, []string{want})
	}
	_, settings, _ := expand(t, texts{"t": "sequence\na,b\n"}, `{"each":{"*":"tsv:t"}}`)
	must.Equal(t, "tsv", settings, []string{`{"sequence":"a,b"}`})
}

func TestFilesAreInNaturalOrder(t *testing.T) {
	names := []string{"lig10.sdf", "a.sdf", "lig2.sdf.gz", "lig2.sdf", "lig02.sdf", "2.sdf", "10.sdf", "x.pdb", ".sdf"}
	rows, _, faults := expand(t, texts{"in/": strings.Join(names, " ")}, `{"each":{"ligand":"folder:in/*"}}`)
	must.Equal(t, "faults", faults, nil)
	must.Equal(t, "order", rows.Sources, []string{".sdf", "2.sdf", "10.sdf", "a.sdf", "lig02.sdf", "lig2.sdf", "lig2.sdf.gz", "lig10.sdf", "x.pdb"})
	must.Equal(t, "names", rows.Names, []string{"b-1", "b-2", "b-10", "b-a", "b-lig02", "b-lig2", "b-lig2-2", "b-lig10", "b-x"})
}

func TestNamesOfRowsAreUniqueAndAllowed(t *testing.T) {
	long := strings.Repeat("長", 250)
	var ids []string
	for _, id := range []string{"a/b", "a|b", "a_b", "...", "///", long[:600], long[:600] + "x", "e\u0301", "\u202e", "b-2"} {
		ids = append(ids, ">"+id+"\nM\n")
	}
	rows, _, _ := expand(t, texts{"p": strings.Join(ids, "")}, `{"each":{"sequence":"fasta:p"}}`)
	if n := len(rows.Names); n != len(ids) {
		t.Fatalf("%d names", n)
	}
	for i, name := range rows.Names {
		if msg := naming.CheckName(name); msg != "" || slices.Index(rows.Names, name) != i || !strings.HasPrefix(name, "b-") {
			t.Errorf("row %d is named %q: %s", i, name, msg)
		}
	}
	must.Equal(t, "alike", rows.Names[:5], []string{"b-a_b", "b-a_b-2", "b-a_b-3", "b-4", "b-5"})

	// Ten thousand colliding names must not take longer than distinct ones.
	var many strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&many, ">%s%d\nM\n", strings.Repeat("x", 190), i)
	}
	v, _ := strictjson.Parse([]byte(`{"each":{"sequence":"fasta:p"}}`))
	r, _ := ReadRequest(v)
	rows, faults, err := Expand(t.Context(), r, strings.Repeat("n", maxBatchName), dock(t), texts{"p": many.String()}, 10_000)
	if err != nil || faults != nil || len(rows.Names) != 10_000 || len(slices.Compact(slices.Sorted(slices.Values(rows.Names)))) != 10_000 {
		t.Errorf("%v %v", faults, err)
	}
	_, faults, _ = Expand(t.Context(), r, strings.Repeat("n", maxBatchName+1), dock(t), texts{"p": ">a\nM"}, 10)
	must.Equal(t, "a long name", sentences(faults), []string{"[batchName]: use at most 150 characters, not 151: the names of the batch's jobs begin with it"})
}

func TestExpansionLimits(t *testing.T) {
	lines := func(n int) string { return "count\n" + strings.Repeat("1\n", n) }
	if rows, _, faults := expand(t, texts{"t": lines(100)}, `{"each":{"*":"csv:t"}}`); len(faults) > 0 || len(rows.Settings) != 100 {
		t.Errorf("100 rows: %v", faults)
	}
	for name, text := range map[string]string{"csv:t": lines(101), "fasta:t": strings.Join(records(101), ""), "folder:t/*": strings.Repeat("a", 0)} {
		files := texts{"t": text}
		for i := range 101 {
			files["t/"] += fmt.Sprintf(" %d.sdf", i)
		}
		setting := map[string]string{"csv:t": "count", "fasta:t": "sequence", "folder:t/*": "ligand"}[name]
		rows, _, faults := expand(t, files, fmt.Sprintf(`{"each":{%q:%q}}`, setting, name))
		must.Equal(t, name, faults, []string{"[fanOut each " + setting + "]: this makes more than 100 jobs, the maximum for a batch"})
		if rows != nil {
			t.Errorf("%s: there are rows", name)
		}
	}
	_, _, faults := expand(t, texts{"t": lines(99)}, `{"each":{"*":"csv:t"},"settings":{"sequence":"`+strings.Repeat("x", 1<<20)+`"}}`)
	must.Equal(t, "bytes of all rows", faults, []string{"[fanOut]: the settings of all jobs exceed 64 MiB; put shared values into a file, or submit several batches"})
	_, _, faults = expand(t, texts{"t": "count" + strings.Repeat(",", 2_000_001)}, `{"each":{"*":"csv:t"}}`)
	must.Equal(t, "cells", faults, []string{"[fanOut each *]: the table has 2000001 separators ','; at most 2000000 are supported"})
}

func records(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf(">r%d\nM\n", i))
	}
	return all
}

// refusing is a Files that fails to reserve memory or to read.
type refusing struct {
	texts
	left int64
	err  error
}

func (r *refusing) Reserve(n int64) error {
	if r.left -= n; r.left < 0 {
		return r.err
	}
	return nil
}

func TestMemoryOfRowsIsReserved(t *testing.T) {
	busy := errors.New("busy")
	v, _ := strictjson.Parse([]byte(`{"each":{"*":"csv:t"}}`))
	r, _ := ReadRequest(v)
	files := &refusing{texts{"t": "count\n" + strings.Repeat("1\n", 50)}, 50 * (memberBytes + 11), busy}
	if _, faults, err := Expand(t.Context(), r, "b", dock(t), files, 100); err != nil || faults != nil || files.left != 0 {
		t.Errorf("%v, %v, %d left", faults, err, files.left)
	}
	files.left = 50*(memberBytes+11) - 1
	if _, _, err := Expand(t.Context(), r, "b", dock(t), files, 100); !errors.Is(err, busy) {
		t.Errorf("%v, want busy", err)
	}
}

// FuzzExpand checks that arbitrary text yields either errors or jobs with unique names
// and settings in valid JSON.
func FuzzExpand(f *testing.F) {
	f.Add("csv", []byte("count,sequence,jobName\n1,\"a\"\"b\",x\n2,,\n"))
	f.Add("tsv", []byte("count\tsequence\r\n1\t\r\n"))
	f.Add("csv", []byte("\ufeffcount;fast\n;TRUE\n;;\n\"\n"))
	f.Add("fasta", []byte(">a b\nMK V\n;c\n>d\nM"))
	f.Add("fasta", []byte("\xff\xfe>"))
	a := dock(f)
	f.Fuzz(func(t *testing.T, kind string, text []byte) {
		setting := "sequences"
		if kind != "fasta" {
			kind, setting = map[bool]string{true: "tsv", false: "csv"}[kind == "tsv"], AllColumns
		}
		r := Request{Sources: []Source{{Setting: setting, Kind: Kind(kind), Ref: "f"}}}
		rows, faults, err := Expand(t.Context(), r, "b", a, texts{"f": string(text)}, 50)
		must.OK(t, err)
		for _, f := range faults {
			if f.Msg == "" || f.Type == "" || !utf8.ValidString(f.Msg) {
				t.Errorf("an incomplete fault: %+v", f)
			}
		}
		if rows == nil {
			if len(faults) == 0 {
				t.Error("neither rows nor faults")
			}
			return
		}
		for i, v := range rows.Settings {
			if v == nil && len(faults) == 0 {
				t.Error("a row without settings or faults")
			}
			if v != nil {
				again, err := strictjson.Parse(v.Raw)
				if len(faults) == 0 && (err != nil || !bytes.Equal(again.AppendCanonical(nil), v.AppendCanonical(nil))) {
					t.Errorf("settings %s: %v", v.Raw, err)
				}
			}
			if name := rows.Names[i]; len(faults) == 0 && naming.CheckName(name) != "" {
				t.Errorf("the name %q", name)
			}
			if len(faults) == 0 && (!utf8.ValidString(rows.Sources[i]) || rows.Sources[i] == "") {
				t.Errorf("the source %q", rows.Sources[i])
			}
		}
	})
}
