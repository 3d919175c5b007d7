package web_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/job/listing"
	"molrun/app/test/must"
)

// dockAlgorithm is an algorithm with ranked results.
const dockAlgorithm = `
format = 1
type = "dock"
version = "1"
max_runtime = "1h"
command = ["true"]

[[parameters]]
name = "seed"
title = "Seed of random numbers"
type = "integer"
default = 1

[[parameters]]
name = "ligand"
title = "Ligand"
type = "string"
required = true

[[parameters]]
name = "exhaustiveness"
type = "integer"
default = 8

[metrics]
poses = { title = "Number of poses" }
affinity = { title = "Affinity", unit = "kcal/mol", better = "lower", rank = true, digits = 1 }
`

// table is the response to GET /jobs/{batchName}/table.
type table struct {
	Sort, Order       string
	Settings, Metrics []struct {
		Name, Title, Unit, Better string
		Digits                    *int
	}
	Statuses app.Counts
	Rows     []struct {
		JobName, Source, Type, Status, FailureCode, FailureMessage string
		Row                                                        int
		Progress                                                   map[string]any
		RunSeconds                                                 *float64
		Settings, Metrics                                          map[string]any
		Warnings                                                   []string
	}
	StartKey string
}

func (s *service) table(path string) (t table) {
	s.t.Helper()
	must.OK(s.t, json.Unmarshal([]byte(s.want(200, "GET", path, "").body), &t))
	return t
}

func (t table) names() string {
	var names []string
	for _, r := range t.Rows {
		names = append(names, strings.TrimPrefix(r.JobName, "screen-"))
	}
	return strings.Join(names, " ")
}

// docking returns a service with a batch of seven jobs: four have completed, one has
// failed, one is running and one is queued.
func docking(t *testing.T) *service {
	t.Helper()
	s := start(t, func(with *setup) { with.algorithm = dockAlgorithm })
	s.want(200, "POST", "/submit-batch", `{"batchName":"screen","type":"dock","settings":[
		{"ligand":"CCO"},{"ligand":"=1+2","seed":7},{"ligand":"-1,\"x\""},{"ligand":"C","seed":1},{"ligand":"-5"},{"ligand":"N"},{"ligand":"O"}]}`)
	for row, results := range []string{
		`{"affinity":-7.5,"poses":9,"note":"=HYPERLINK(\"http://x\")"}`, `{"affinity":-10}`,
		`{"affinity":"NaN","poses":2,"list":[1]}`, `{"affinity":-9.25,"zeta":true}`,
	} {
		s.complete(fmt.Sprint("screen-", row+1), results)
	}
	s.run("screen-5", nil)
	running := s.claim("screen-6")
	s.app.Runs.SetProgress(running, app.Progress{Fraction: .5, Text: "pose 4"})
	return s
}

func TestRowsThatDoNotCompareAreNotRanked(t *testing.T) {
	s := start(t, func(with *setup) {
		with.algorithm = strings.Replace(dockAlgorithm, `better = "lower"`, `better = "lower", same = ["ligand"]`, 1)
	})
	for name, tt := range map[string]struct{ settings, sort, better string }{
		"ligands": {`[{"ligand":"C"},{"ligand":"O"}]`, "row", ""},
		"seeds":   {`[{"ligand":"C","seed":1},{"ligand":"C","seed":2}]`, "metric:affinity", "lower"},
	} {
		s.want(200, "POST", "/submit-batch", `{"batchName":"`+name+`","type":"dock","settings":`+tt.settings+`}`)
		all := s.table("/jobs/" + name + "/table")
		same(t, name, []string{all.Sort, all.Metrics[1].Better}, []string{tt.sort, tt.better})
	}
}

// complete runs a queued job to completion, with metrics but without files.
func (s *service) complete(name, results string) {
	s.t.Helper()
	s.end(s.claim(name), 1500*time.Millisecond, app.Ending{Results: json.RawMessage(results), Warnings: []string{"not converged"}})
}

func TestTableIsRanked(t *testing.T) {
	s := docking(t)
	all := s.table("/jobs/screen/table")
	same(t, "order", []string{all.Sort, all.Order, all.names()}, []string{"metric:affinity", "asc", "2 4 1 3 5 6 7"})
	same(t, "statuses", all.Statuses, app.Counts{Queued: 1, Running: 1, Completed: 4, Failed: 1})
	var columns []string
	for _, c := range slices.Concat(all.Settings, all.Metrics) {
		columns = append(columns, strings.Join([]string{c.Name, c.Title, c.Unit, c.Better}, "|"))
	}
	same(t, "columns", columns, []string{
		"seed|Seed of random numbers||", "ligand|Ligand||",
		"poses|Number of poses||", "affinity|Affinity|kcal/mol|lower", "note|note||", "zeta|zeta||",
	})
	best, third, failed, running := all.Rows[0], all.Rows[3], all.Rows[4], all.Rows[5]
	same(t, "settings", []any{best.Settings, third.Settings}, []any{
		map[string]any{"seed": 7.0, "ligand": "=1+2"}, map[string]any{"seed": 1.0, "ligand": `-1,"x"`},
	})
	same(t, "metrics", []any{best.Metrics, third.Metrics, running.Metrics}, []any{
		map[string]any{"poses": nil, "affinity": -10.0, "note": nil, "zeta": nil},
		map[string]any{"poses": 2.0, "affinity": nil, "note": nil, "zeta": nil},
		map[string]any{"poses": nil, "affinity": nil, "note": nil, "zeta": nil},
	})
	same(t, "run time", *best.RunSeconds, 1.5)
	same(t, "warnings", [][]string{best.Warnings, failed.Warnings}, [][]string{{"not converged"}, nil})
	same(t, "failure", []string{failed.FailureCode, failed.FailureMessage}, []string{"EXIT_STATUS", "It ended with status 1."})
	same(t, "digits", []any{all.Metrics[0].Digits == nil, *all.Metrics[1].Digits}, []any{true, 1})
	same(t, "live", []any{running.Status, running.Progress["text"], running.RunSeconds == nil}, []any{"RUNNING", "pose 4", true})
	s.complete("screen-7", `{"affinity":-99}`)
	same(t, "a moment later", s.table("/jobs/screen/table").names(), "7 2 4 1 3 5 6")
}

func TestTableIsRankedHighestFirstWhereThatIsBetter(t *testing.T) {
	s := start(t, func(with *setup) { with.algorithm = strings.Replace(dockAlgorithm, `"lower"`, `"higher"`, 1) })
	s.want(200, "POST", "/submit-batch", `{"batchName":"screen","type":"dock","settings":[{"ligand":"C"},{"ligand":"N"}]}`)
	s.complete("screen-1", `{"affinity":1}`)
	s.complete("screen-2", `{"affinity":2}`)
	ranked := s.table("/jobs/screen/table")
	same(t, "order", []string{ranked.Order, ranked.names()}, []string{"desc", "2 1"})
	same(t, "by row", s.table("/jobs/screen/table?sort=row").Order, "asc")
}

func TestTableIsSortedAndPaged(t *testing.T) {
	s := docking(t)
	for query, want := range map[string]string{
		"":                             "2 4 1 3 5 6 7",
		"order=desc":                   "1 4 2 3 5 6 7",
		"sort=metric:poses":            "3 1 2 4 5 6 7",
		"sort=metric:poses&order=desc": "1 3 2 4 5 6 7",
		"sort=metric:absent":           "1 2 3 4 5 6 7",
		"sort=row":                     "1 2 3 4 5 6 7",
		"sort=row&order=desc":          "7 6 5 4 3 2 1",
	} {
		same(t, query, s.table("/jobs/screen/table?"+query).names(), want)
		var paged []string
		for next := ""; ; {
			page := s.table("/jobs/screen/table?limit=2&" + query + next)
			paged = append(paged, page.names())
			if page.StartKey == "" {
				break
			}
			next = "&startKey=" + page.StartKey
		}
		same(t, query+" page by page", strings.Join(paged, " "), want)
	}
	cursor := s.table("/jobs/screen/table?limit=2").StartKey
	for path, faults := range map[string][]string{
		"/jobs/screen/table?order=desc&startKey=" + cursor:           {"query.startKey value"},
		"/jobs/screen/table?format=csv&startKey=" + cursor:           {"query.startKey value"},
		"/jobs/screen/table?sort=affinity&limit=0&order=x":           {"query.sort value", "query.order value", "query.limit value"},
		"/jobs/screen/table?sort=metric:&limit=1001&format=x":        {"query.format value", "query.sort value", "query.limit value"},
		"/jobs/screen/table?sort=metric:%ff&state=FAILED&status=":    {"query.status value", "query.sort value", "query.state unknown"},
		"/jobs/screen-1/table":                                       {"path.jobName value"},
		"/jobs?sort=metric:affinity&batch=screen&sort=x":             {"query.sort value"},
		"/jobs?sort=metric:affinity":                                 {"query.sort value"},
		"/jobs?sort=metric:&batch=screen":                            {"query.sort value"},
		"/jobs?sort=metric:affinity&batch=screen&startKey=" + cursor: {"query.startKey value"},
	} {
		same(t, path, s.want(422, "GET", path, "").faults(t), faults)
	}
	s.want(404, "GET", "/jobs/absent/table", "")
	s.want(404, "GET", "/jobs/absent/table?format=csv", "")
	same(t, "to another organization", s.as(s.eve, "GET", "/jobs/screen/table", "").status, 404)
}

func TestTableOfSomeStatuses(t *testing.T) {
	s := docking(t)
	failed := s.table("/jobs/screen/table?status=FAILED")
	same(t, "failed rows", []string{failed.names(), failed.Sort}, []string{"5", "metric:affinity"})
	same(t, "all are counted", failed.Statuses.Completed, 4)
	same(t, "the others", s.table("/jobs/screen/table?status=QUEUED&status=RUNNING&status=COMPLETED&status=RUNNING").names(), "2 4 1 3 6 7")
	same(t, "by row", s.table("/jobs/screen/table?sort=row&order=desc&status=COMPLETED").names(), "4 3 2 1")
	first := s.table("/jobs/screen/table?status=COMPLETED&status=FAILED&limit=3")
	same(t, "a page", first.names(), "2 4 1")
	same(t, "the next", s.table("/jobs/screen/table?status=COMPLETED&status=FAILED&limit=3&startKey="+first.StartKey).names(), "3 5")
	s.want(422, "GET", "/jobs/screen/table?status=COMPLETED&startKey="+first.StartKey, "")
	s.want(422, "GET", "/jobs/screen/table?status=DONE", "")
	same(t, "as CSV", strings.Count(s.want(200, "GET", "/jobs/screen/table?status=FAILED&format=csv", "").body, "\n"), 2)
}

func TestTableAsCSV(t *testing.T) {
	s := docking(t)
	const want = `row,jobName,source,type,status,attempts,startedAt,completedAt,queueSeconds,runSeconds,failureCode,setting:seed,setting:ligand,metric:poses,metric:affinity,metric:note,metric:zeta
2,screen-2,,dock,COMPLETED,1,,,,1.5,,7,'=1+2,,-10,,
4,screen-4,,dock,COMPLETED,1,,,,1.5,,1,C,,-9.25,,true
1,screen-1,,dock,COMPLETED,1,,,,1.5,,1,CCO,9,-7.5,"'=HYPERLINK(""http://x"")",
3,screen-3,,dock,COMPLETED,1,,,,1.5,,1,"'-1,""x""",2,,,
5,screen-5,,dock,FAILED,1,,,,0,EXIT_STATUS,1,-5,,,,
6,screen-6,,dock,RUNNING,1,,,,,,1,N,,,,
7,screen-7,,dock,QUEUED,0,,,,,,1,O,,,,
`
	got := s.want(200, "GET", "/jobs/screen/table?format=csv", "")
	same(t, "type", got.header.Get("Content-Type"), "text/csv; charset=utf-8; header=present")
	same(t, "file", got.header.Get("Content-Disposition"), "attachment; filename=screen.csv")
	same(t, "CSV", withoutTimes(t, got.body), want)
	lines := strings.SplitAfter(got.body, "\n")
	same(t, "the best two", s.want(200, "GET", "/jobs/screen/table?format=csv&limit=2", "").body, strings.Join(lines[:3], ""))
	same(t, "HEAD", s.want(200, "HEAD", "/jobs/screen/table?format=csv", "").body, "")
	for accept, isCSV := range map[string]bool{
		"text/csv": true, "text/csv, application/json;q=0.9": true, "text/*": true, "TEXT/CSV;q=0.1": true, "text/csv;header=present, */*;q=0.1": true,
		"": false, "*/*": false, "application/json": false, "text/csv;q=0.5, application/json": false, "text/csv;q=0": false,
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": false, ";;, text/csv;q=x;": true,
		"text/csv, application/*": false,
	} {
		a := s.send("GET", "/jobs/screen/table", "", "x-api-key", s.ann, "Accept", accept)
		same(t, "Accept: "+accept, strings.HasPrefix(a.header.Get("Content-Type"), "text/csv"), isCSV)
		same(t, "Vary", a.header.Get("Vary"), "Accept")
	}
	a := s.send("GET", "/jobs/screen/table?format=json", "", "x-api-key", s.ann, "Accept", "text/csv")
	same(t, "format goes before Accept", a.header.Get("Content-Type"), "application/json")
}

// withoutTimes returns CSV in which times that vary between runs are empty.
func withoutTimes(t *testing.T, text string) string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	must.OK(t, err)
	var out strings.Builder
	w := csv.NewWriter(&out)
	for i, row := range rows {
		if i > 0 {
			if _, err := time.Parse(time.RFC3339, row[6]); err != nil {
				t.Errorf("createdAt: %v", err)
			}
			for c := 7; c < 10; c++ {
				row[c] = ""
			}
		}
		must.OK(t, w.Write(slices.Delete(row, 6, 7)))
	}
	w.Flush()
	return out.String()
}

func TestRowsAreListedByMetric(t *testing.T) {
	s := docking(t)
	for query, want := range map[string]string{
		"sort=metric:affinity&order=asc":                                "2 4 1 3 5 6 7",
		"sort=metric:affinity":                                          "1 4 2 3 5 6 7",
		"sort=metric:affinity&order=asc&status=FAILED&status=COMPLETED": "2 4 1 3 5",
		"sort=metric:affinity&search=screen-4":                          "4",
		"sort=metric:affinity&order=asc&until=2000-01-01":               "",
		"sort=metric:affinity&order=asc&since=2000-01-01":               "2 4 1 3 5 6 7",
	} {
		query = "batch=screen&count=1&limit=2&" + query
		same(t, query+" count", s.find(query).Count, any(float64(len(strings.Fields(want)))))
		same(t, query, strings.ReplaceAll(s.paged(query), "screen-", ""), want)
	}
}

// TestTableOfLargeRows reads rows of one megabyte: pages end early, and CSV is sent in
// parts.
func TestTableOfLargeRows(t *testing.T) {
	s := start(t, func(with *setup) { with.algorithm = dockAlgorithm })
	var settings []string
	for row := range 7 {
		settings = append(settings, fmt.Sprintf(`{"ligand":%q,"seed":%d}`, strings.Repeat("C", 1<<20), row))
	}
	settings[6] = `{"ligand":"C"}`
	s.want(200, "POST", "/submit-batch", `{"batchName":"screen","type":"dock","settings":[`+strings.Join(settings, ",")+`]}`)
	first := s.table("/jobs/screen/table?sort=row")
	same(t, "first page", first.names(), "1 2 3 4")
	same(t, "second page", s.table("/jobs/screen/table?sort=row&startKey="+first.StartKey).names(), "5 6 7")
	same(t, "lines of CSV", strings.Count(s.want(200, "GET", "/jobs/screen/table?format=csv", "").body, "\n"), 8)
}

func TestTableOfManyRowsWhileTheyAreDeleted(t *testing.T) {
	s := start(t, func(with *setup) { with.algorithm = dockAlgorithm })
	rows := strings.Repeat(`{"ligand":"C"},`, 450)
	s.want(200, "POST", "/submit-batch", `{"batchName":"screen","type":"dock","settings":[`+strings.TrimSuffix(rows, ",")+`]}`)
	same(t, "no settings differ", len(s.table("/jobs/screen/table").Settings), 0)
	lines := strings.Split(s.want(200, "GET", "/jobs/screen/table?format=csv", "").body, "\n")
	same(t, "lines", []string{fmt.Sprint(len(lines)), lines[0], lines[450][:14]}, []string{
		"452", "row,jobName,source,type,status,attempts,createdAt,startedAt,completedAt,queueSeconds,runSeconds,failureCode,metric:poses,metric:affinity", "450,screen-450",
	})
	lists, err := listing.New(s.store, s.app.Jobs, bytes.Repeat([]byte{7}, 32))
	must.OK(t, err)
	by := app.Caller{Organization: "lab", Email: "ann@lab.example"}
	_, parts, err := lists.WholeTable(t.Context(), by, listing.TableQuery{Batch: "screen", Limit: app.MaxBatchRows})
	must.OK(t, err)
	seen := 0
	for rows, err := range parts {
		must.OK(t, err)
		if seen += len(rows); seen == len(rows) {
			for _, n := range []int{201, 300, 450} {
				s.run(fmt.Sprint("screen-", n), nil)
				s.want(204, "DELETE", fmt.Sprint("/jobs/screen-", n), "")
			}
		}
	}
	same(t, "rows", seen, 447)
}

// TestTableOfAPipeline also requests a table whose jobs have several types.
func TestTableOfAPipeline(t *testing.T) {
	s := start(t, func(with *setup) { with.algorithm = dockAlgorithm })
	s.want(200, "POST", "/submit-batch", `{"batchName":"screen","jobs":[
		{"jobName":"screen-a","type":"dock","settings":{"ligand":"C"}},
		{"jobName":"screen-b","type":"dock","settings":{"ligand":"N"},"after":["screen-a"]}]}`)
	all := s.table("/jobs/screen/table")
	same(t, "columns", []any{all.Sort, len(all.Settings), all.Settings[0].Name, len(all.Metrics)}, []any{"metric:affinity", 1, "ligand", 2})
	same(t, "rows", []string{all.names(), all.Rows[1].Type, all.Rows[1].Status}, []string{"a b", "dock", "QUEUED"})
	err := s.store.Update(t.Context(), func(tx app.Tx) error { // turns the batch into a pipeline with several types
		batch, err := tx.JobNamed("lab", "screen")
		if err != nil {
			return err
		}
		same(t, "settings that differ", batch.Private.Varying, []string{"ligand"})
		batch.Type, batch.Version, batch.Private.Definition = "", "", ""
		return tx.PutJob(batch)
	})
	must.OK(t, err)
	s.complete("screen-a", `{"zeta":1}`)
	all = s.table("/jobs/screen/table")
	same(t, "columns of several types", []any{all.Sort, all.Order, all.Settings[0].Title, all.Metrics[0].Name, len(all.Metrics)}, []any{"row", "asc", "ligand", "zeta", 1})
}

func TestTableNamesSources(t *testing.T) {
	s := start(t, func(with *setup) { with.algorithm = dockAlgorithm })
	a := s.send("POST", "/submit-batch?type=dock&batchName=screen", "ligand\nC\nN\n", "x-api-key", s.ann, "Content-Type", "text/csv")
	same(t, "submission", a.status, 200)
	same(t, "source", s.table("/jobs/screen/table").Rows[1].Source, "line 3")
	lines := strings.Split(s.want(200, "GET", "/jobs/screen/table?format=csv", "").body, "\n")
	same(t, "CSV", lines[2][:strings.Index(lines[2], ",QUEUED")], "2,screen-2,line 3,dock")
}
