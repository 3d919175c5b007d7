package web_test

import (
	"fmt"
	"strings"
	"testing"
)

// uploadTo uploads and completes a file in a folder as ann.
func (s *service) uploadTo(folder, name, text string) string {
	s.t.Helper()
	return s.upload(name+"?folder="+folder, text)
}

// rowsOf returns the given members of the jobs of a batch, in order.
func (s *service) rowsOf(batch string, members ...string) (rows [][]any) {
	s.t.Helper()
	list := s.want(200, "GET", "/jobs?order=asc&limit=100&batch="+batch, "").fields(s.t)["jobs"].([]any)
	for _, j := range list {
		var row []any
		for _, member := range members {
			row = append(row, j.(map[string]any)[member])
		}
		rows = append(rows, row)
	}
	return rows
}

func settings(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}

func TestFanOutMakesARowForEachFileOfAFolder(t *testing.T) {
	s := start(t)
	for _, name := range []string{"lig10.pdb", "lig2.pdb", "lig1.pdb"} {
		s.uploadTo("ligands", name, name)
	}
	s.uploadTo("ligands", "lig2.pdb", "newer")
	s.uploadTo("ligands", "notes.txt", "other")
	s.uploadTo("elsewhere", "lig3.pdb", "other")
	body := `{"batchName":"b","type":"echo","fanOut":{"each":{"structure":"folder:ligands/*.pdb"},"settings":{"steps":7}}}`
	created := s.want(200, "POST", "/submit-batch", body).fields(t)
	same(t, "created, counts", []any{created["created"], created["subjobCounts"].(map[string]any)["QUEUED"]}, []any{true, 3.0})
	same(t, "rows", s.rowsOf("b", "jobName", "source", "settings"), [][]any{
		{"b-lig1", "lig1.pdb", settings("steps", 7.0, "structure", "ligands/lig1.pdb")},
		{"b-lig2", "lig2.pdb", settings("steps", 7.0, "structure", "ligands/lig2.pdb")},
		{"b-lig10", "lig10.pdb", settings("steps", 7.0, "structure", "ligands/lig10.pdb")},
	})
	input := s.want(200, "GET", "/jobs/b-lig2", "").fields(t)["inputs"].([]any)[0].(map[string]any)
	same(t, "the newest upload of a name", input["sha256"], sha256Hex("newer"))

	// Repeating the request returns the same batch, even after another upload to the
	// folder.
	s.uploadTo("ligands", "lig4.pdb", "late")
	again := s.want(200, "POST", "/submit-batch", body).fields(t)
	same(t, "again", []any{again["created"], again["jobId"]}, []any{false, created["jobId"]})
	// So does submitting the same jobs in another form.
	byHand := s.want(200, "POST", "/submit-batch", `{"batchName":"b","type":"echo","jobNames":["b-lig1","b-lig2","b-lig10"],"settings":[
		{"structure":"ligands/lig1.pdb","steps":7},{"structure":"ligands/lig2.pdb","steps":7},{"structure":"ligands/lig10.pdb","steps":7}]}`).fields(t)
	same(t, "by hand", byHand["created"], false)
	asTable := s.sendTable("batchName=b&type=echo", "structure,steps,jobName\nligands/lig1.pdb,7,b-lig1\nligands/lig2.pdb,7,b-lig2\nligands/lig10.pdb,7,b-lig10\n")
	same(t, "as a table", asTable.fields(t)["created"], false)
	same(t, "other rows", s.want(409, "POST", "/submit-batch", strings.Replace(body, "7", "8", 1)).code(), "JOB_ALREADY_EXISTS")
}

// sendTable submits a batch as CSV.
func (s *service) sendTable(query, text string) answer {
	s.t.Helper()
	return s.send("POST", "/submit-batch?"+query, text, "x-api-key", s.ann, "Content-Type", "text/csv; charset=utf-8")
}

func TestTablesMakeRows(t *testing.T) {
	s := start(t)
	s.upload("a.pdb", "A")
	const text = "\ufeffjobName;steps;structure\r\nfirst;5;inputs/a.pdb\r\n; 1e1 ;\r\n;;\r\n\r\n;;\"inputs/a.pdb\"\r\n"
	want := [][]any{
		{"first", "line 2", settings("steps", 5.0, "structure", "inputs/a.pdb")},
		{"b-2", "line 3", settings("steps", 10.0)},
		{"b-3", "line 6", settings("structure", "inputs/a.pdb")},
	}
	a := s.sendTable("batchName=b&type=echo&tag=round:1&note=a&priority=-2&maxRuntimeSeconds=60&version=1", text)
	same(t, "status", a.status, 200)
	same(t, "rows of a body", s.rowsOf("b", "jobName", "source", "settings"), want)
	batch := s.want(200, "GET", "/jobs/b", "").fields(t)
	same(t, "of the query", []any{batch["priority"], batch["maxRuntimeSeconds"], batch["note"], batch["tags"]}, []any{-2.0, 60.0, "a", map[string]any{"round": "1"}})
	same(t, "again", s.sendTable("batchName=b&type=echo&tag=round:1&note=a&priority=-2&maxRuntimeSeconds=60&version=1", text).fields(t)["created"], false)

	s.upload("rows.csv", strings.ReplaceAll(text, "first", "other"))
	s.want(200, "POST", "/submit-batch", `{"batchName":"c","type":"echo","fanOut":{"each":{"*":"csv:inputs/rows.csv"}}}`)
	want[0][0], want[1][0], want[2][0] = "other", "c-2", "c-3"
	same(t, "rows of an upload", s.rowsOf("c", "jobName", "source", "settings"), want)

	a = s.send("POST", "/submit-batch?batchName=d&type=echo", "steps\tstructure\n3\tinputs/a.pdb\n\tinputs/a.pdb\n", "x-api-key", s.ann, "Content-Type", "text/tab-separated-values")
	same(t, "status", a.status, 200)
	same(t, "rows of tabs", s.rowsOf("d", "jobName", "settings"), [][]any{{"d-1", settings("steps", 3.0, "structure", "inputs/a.pdb")}, {"d-2", settings("structure", "inputs/a.pdb")}})

	for name, body := range map[string]string{"e": "jobName;steps\r\nKr\xfcger;5\r\n", "f": "\xff\xfej\x00o\x00b\x00N\x00a\x00m\x00e\x00\t\x00s\x00t\x00e\x00p\x00s\x00\r\x00\n\x00K\x00r\x00\xfc\x00g\x00e\x00r\x002\x00\t\x005\x00"} {
		a = s.send("POST", "/submit-batch?type=echo&batchName="+name, body, "x-api-key", s.ann, "Content-Type", "text/csv; charset="+map[string]string{"e": "windows-1252", "f": "UTF-16"}[name])
		same(t, name+" status", a.status, 200)
		same(t, name+" rows", s.rowsOf(name, "jobName", "settings"), [][]any{{map[string]string{"e": "Krüger", "f": "Krüger2"}[name], settings("steps", 5.0)}})
	}
}

func TestUnmatchedUnfinishedUploadsAreIgnored(t *testing.T) {
	s := start(t)
	s.uploadTo("in", "a.pdb", "A")
	s.want(200, "PUT", "/upload/b.sdf?folder=in", "")
	s.want(200, "POST", "/submit-batch", `{"batchName":"b","type":"echo","fanOut":{"each":{"structure":"folder:in/*.pdb"}}}`)
	same(t, "rows", s.rowsOf("b", "source"), [][]any{{"a.pdb"}})
	s.want(200, "PUT", "/upload/c.pdb?folder=in", "")
	s.want(422, "POST", "/submit-batch", `{"batchName":"c","type":"echo","fanOut":{"each":{"structure":"folder:in/*.pdb"}}}`)
}

func TestSourcesAreTakenTogether(t *testing.T) {
	s := start(t)
	s.uploadTo("in", "a.pdb", "A")
	s.uploadTo("in", "b.pdb", "B")
	s.upload("t.csv", "steps,structure\n1,in/b.pdb\n2,in/a.pdb\n")
	s.want(200, "POST", "/submit-batch", `{"batchName":"z","type":"echo","fanOut":{"each":{"structure":"folder:in/","steps":"csv:inputs/t.csv"}}}`)
	same(t, "rows", s.rowsOf("z", "jobName", "source", "settings"), [][]any{
		{"z-a", "line 2, a.pdb", settings("steps", 1.0, "structure", "in/a.pdb")},
		{"z-b", "line 3, b.pdb", settings("steps", 2.0, "structure", "in/b.pdb")},
	})
	s.submit("done")
	s.run("done", map[string]string{"rows.tsv": "steps\n4\n"})
	s.want(200, "POST", "/submit-batch", `{"batchName":"y","type":"echo","fanOut":{"each":{"steps":"tsv:job:done/rows.tsv"}}}`)
	same(t, "rows of a result", s.rowsOf("y", "settings"), [][]any{{settings("steps", 4.0)}})
}

// messages returns the errors in a response as "loc: msg".
func (a answer) messages(t *testing.T) (all []string) {
	t.Helper()
	for _, f := range a.fields(t)["detail"].([]any) {
		all = append(all, fmt.Sprint(f.(map[string]any)["loc"], ": ", f.(map[string]any)["msg"]))
	}
	return all
}

func TestFaultsOfExpandedRowsSayWhereTheyAre(t *testing.T) {
	s := start(t)
	s.uploadTo("in", "a.pdb", "A")
	s.uploadTo("in", "b.txt", "B")
	s.uploadTo("in", "c.txt", "C")
	s.want(200, "PUT", "/upload/late.pdb?folder=half", "")
	s.upload("one.csv", "steps\n0\n5\nx\n")
	s.upload("ragged.csv", "steps,structure\n1\n2,in/none.pdb\n3,in/a.pdb,4\n")
	s.upload("empty.csv", "steps\n")
	fan := func(fanOut string) []string {
		return s.want(422, "POST", "/submit-batch", `{"batchName":"b","type":"echo","fanOut":`+fanOut+`}`).messages(t)
	}
	each := func(setting, source string) string { return fmt.Sprintf(`{"each":{%q:%q}}`, setting, source) }
	for _, tt := range []struct {
		fanOut string
		want   []string
	}{
		{`{}`, []string{`[body fanOut each]: this member is required: specify the source of each job's values, such as {"ligand": "folder:ligands/*.sdf"}`}},
		{`{"each":{}}`, []string{`[body fanOut each]: name at least one setting, such as {"ligand": "folder:ligands/*.sdf"}`}},
		{`{"each":{"steps":1},"more":1,"settings":[]}`, []string{
			`[body fanOut each steps]: use a string such as folder:ligands/*.sdf, not a number`,
			`[body fanOut more]: unknown member "more"; use each or settings`,
			`[body fanOut settings]: use an object, not an array`,
		}},
		{each("structure", "folder:in/*.txt"), []string{
			`[body fanOut each structure]: b.txt: "b.txt" has the wrong file type; this setting takes .pdb`,
			`[body fanOut each structure]: c.txt: "c.txt" has the wrong file type; this setting takes .pdb`,
		}},
		{each("structure", "folder:in/*.sdf"), []string{`[body fanOut each structure]: you have no completed upload named in/*.sdf; GET /files?folder= lists the files of a folder`}},
		{each("structure", "folder:half/*"), []string{`[body fanOut each structure]: the upload half/late.pdb is not complete; complete it or delete it`}},
		{each("structure", "folder:half/*.sdf"), []string{`[body fanOut each structure]: you have no completed upload named half/*.sdf; GET /files?folder= lists the files of a folder`}},
		{each("structure", "folder:in*/x"), []string{`[body fanOut each structure]: use *, ? and [ ] only in file names, not in folder names`}},
		{each("structure", "folder:"), []string{`[body fanOut each structure]: write folder:<folder>/<pattern>, such as folder:ligands/*`}},
		{each("structure", "folder:in/[x"), []string{`[body fanOut each structure]: "[x" is not a valid pattern: use * for any characters, ? for one, [a-z] for a range`}},
		{each("structure", "folder:in"), []string{`[body fanOut each structure]: write folder:<folder>/<pattern>, such as folder:in/*`}},
		{each("structure", "folders:in/*"), []string{`[body fanOut each structure]: did you mean folder:in/*?`}},
		{each("structure", "in/*.pdb"), []string{`[body fanOut each structure]: write folder:<folder>/<pattern>, fasta:<file>, csv:<file> or tsv:<file>`}},
		{each("structure", "fasta:in/a.pdb"), []string{
			`[body fanOut each structure]: "structure" is a file, but a record is not; use one file per job, such as folder:inputs/*.pdb`,
		}},
		{each("*", "folder:in/*"), []string{`[body fanOut each *]: "*" means the columns of a table, csv:<file> or tsv:<file>; for other sources, name the setting`}},
		{each("step", "csv:inputs/one.csv"), []string{
			`[body fanOut each step]: echo has no setting "step"; did you mean "steps"?`,
			`[body fanOut each step]: the table has no column "step"; it has steps`,
		}},
		{each("steps", "csv:inputs/none.csv"), []string{`[body fanOut each steps]: there is no completed upload "inputs/none.csv"; give a fileId, folder/filename of a file that you uploaded, or job:<jobName>/<path>`}},
		{each("*", "csv:inputs/empty.csv"), []string{`[body fanOut each *]: the table has no rows below the header`}},
		{each("*", "csv:inputs/one.csv"), []string{
			`[body fanOut each * 2 steps]: line 2, column "steps": must be at least 1, got 0`,
			`[body fanOut each * 4 steps]: line 4, column "steps": must be a whole number, got text`,
		}},
		{`{"each":{"*":"csv:inputs/one.csv"},"settings":{"steps":5}}`, []string{
			`[body fanOut each * 1 steps]: the setting of column "steps" is also given outside the table: remove one of the two`,
		}},
		{each("*", "csv:inputs/ragged.csv"), []string{
			`[body fanOut each * 2]: line 2: the line has 1 cell, but the first line names 2; it might be truncated`,
			`[body fanOut each * 4]: line 4: the line has 3 cells, but the first line names 2; quote cells that contain a separator`,
			`[body fanOut each * 3 structure]: line 3, column "structure": there is no completed upload "in/none.pdb"; give a fileId, folder/filename of a file that you uploaded, or job:<jobName>/<path>`,
		}},
		{`{"each":{"structure":"folder:in/*","steps":"csv:inputs/empty.csv"}}`, []string{`[body fanOut each steps]: the table has no rows below the header`}},
		{`{"each":{"structure":"folder:in/a*","steps":"csv:inputs/one.csv"}}`, []string{`[body fanOut each structure]: this has 1 row, but "steps" has 3: values are paired one to one, so both need the same number`}},
		{`{"each":{"structure":"folder:in/a*"},"settings":{"structure":"x","steps":0,"stepz":1}}`, []string{
			`[body fanOut settings structure]: this setting is also given in each: remove one of the two`,
		}},
		{`{"each":{"structure":"folder:in/*"},"settings":{"steps":0}}`, []string{
			`[body fanOut settings steps]: must be at least 1, got 0`, // reported once, although it applies to all jobs
			`[body fanOut each structure]: b.txt: "b.txt" has the wrong file type; this setting takes .pdb`,
			`[body fanOut each structure]: c.txt: "c.txt" has the wrong file type; this setting takes .pdb`,
		}},
	} {
		same(t, tt.fanOut, fan(tt.fanOut), tt.want)
	}
	same(t, "with rows", s.want(422, "POST", "/submit-batch", `{"batchName":"b","type":"echo","settings":[{}],"jobNames":["x"],"fanOut":`+each("*", "csv:inputs/one.csv")+`}`).messages(t), []string{
		`[body settings]: fanOut creates the jobs and their names; send either this or fanOut`,
		`[body jobNames]: fanOut creates the jobs and their names; send either this or fanOut`,
		`[body fanOut each * 2 steps]: line 2, column "steps": must be at least 1, got 0`,
		`[body fanOut each * 4 steps]: line 4, column "steps": must be a whole number, got text`,
	})
	same(t, "nothing else", len(s.want(200, "GET", "/jobs", "").fields(t)["jobs"].([]any)), 0)
}

func TestFaultsOfATableSayTheirLine(t *testing.T) {
	s := start(t)
	for _, tt := range []struct {
		query, text string
		want        []string
	}{
		{"", "steps\n1\n", []string{"[query batchName]: this parameter is required", "[query type]: this parameter is required"}},
		{"batchName=a/b&type=ecco&more=1&priority=99", "steps\n1\n", []string{
			`[query more]: unknown query parameter "more"; did you mean "note"?`,
			`[query type]: there is no algorithm "ecco" on this server; did you mean "echo"?`,
			`[query priority]: use a priority from -10 to 10`,
			`[query batchName]: use a name without '/'`,
		}},
		{"batchName=b&type=echo&tag=x", "steps\n0\n", []string{
			`[query tag]: write a tag as key:value`,
			`[body 2 steps]: line 2, column "steps": must be at least 1, got 0`,
		}},
		{"batchName=b&type=echo", "", []string{`[body]: the table is empty: its first line names the settings`}},
		{"batchName=b&type=echo", "steps\n", []string{`[body]: the table has no rows below the header`}},
		{"batchName=b&type=echo", "steps,stepz,steps,,jobName\n1,2,3,4,b\n1,2,3,4,x\n0,2,3,4,x\n", []string{
			`[body 1]: line 1: the column "steps" occurs twice`,
			`[body 1]: line 1: column 4 has cells but no name (see line 2): name a setting, or remove the column`,
			`[body 1 stepz]: column "stepz": echo has no setting "stepz"; did you mean "steps"?`,
			`[body 2 jobName]: line 2, column "jobName": choose a name other than the name of the batch`,
			`[body 4 jobName]: line 4, column "jobName": "x" is already the name of line 3`,
			`[body 4 steps]: line 4, column "steps": must be at least 1, got 0`,
		}},
		{"batchName=b&type=echo", "steps\n\"1\n2\n", []string{`[body 2]: line 2: a quote is not closed, or something follows it in its cell; within quotes write "" for a quote`}},
		{"batchName=b&type=echo", "steps\n1\"2\n0\n", []string{
			`[body 2]: line 2: a cell with a quote in it stands in quotes, with the quote doubled: "a ""b"" c"`,
			`[body 3 steps]: line 3, column "steps": must be at least 1, got 0`,
		}},
		{"batchName=b&type=echo", "steps\n1\n\x81\n", []string{`[body 3]: line 3: the text is neither UTF-8 nor Windows-1252 (byte 0x81); save it as UTF-8`}},
		{"batchName=b&type=echo", "steps;jobName\n1.234,5;\n", []string{`[body 2 steps]: line 2, column "steps": "1.234,5" is not a number; use a decimal point and no thousands separators, such as 1234.5`}},
	} {
		a := s.sendTable(tt.query, tt.text)
		same(t, tt.text, a.status, 422)
		same(t, tt.text, a.messages(t), tt.want)
	}
	same(t, "other charset", s.send("POST", "/submit-batch?batchName=b&type=echo", "steps\n1\n", "x-api-key", s.ann, "Content-Type", "text/csv; charset=shift_jis").code(), "UNSUPPORTED_MEDIA_TYPE")
	same(t, "other route", s.send("POST", "/submit-job", "steps\n1\n", "x-api-key", s.ann, "Content-Type", "text/csv").code(), "UNSUPPORTED_MEDIA_TYPE")
	same(t, "JSON with a query", s.want(422, "POST", "/submit-batch?type=echo", `{"batchName":"b","type":"echo","settings":[{}]}`).faults(t), []string{"query.type unknown"})
}
