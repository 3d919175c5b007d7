package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// hosted is a client of the compatibility API that behaves like scripts written for the
// hosted service: it resolves paths against a base URL that ends with a slash, and sends
// its key only to the API.
type hosted struct {
	t    *testing.T
	base string
	key  string
}

func (u user) hosted() hosted { return hosted{u.t, u.base + "/compat/", u.key} }

// compatAnswer is a response.
type compatAnswer struct {
	t      *testing.T
	status int
	header http.Header
	text   string
}

func (h hosted) do(method, path, body string, header ...string) compatAnswer {
	h.t.Helper()
	return h.send(method, path, strings.NewReader(body), header...)
}

func (h hosted) send(method, path string, body io.Reader, header ...string) compatAnswer {
	h.t.Helper()
	target := path
	if !strings.HasPrefix(path, "http") {
		target = h.base + path
	}
	r, err := http.NewRequestWithContext(h.t.Context(), method, target, body)
	must.OK(h.t, err)
	if target != path {
		r.Header.Set("x-api-key", h.key)
		r.Header.Set("Accept", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	must.OK(h.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must.OK(h.t, err)
	return compatAnswer{h.t, resp.StatusCode, resp.Header, strings.TrimSuffix(string(text), "\n")}
}

func (s compatAnswer) want(status int) compatAnswer {
	s.t.Helper()
	if s.status != status {
		s.t.Fatalf("status %d, want %d: %s", s.status, status, s.text)
	}
	return s
}

func (s compatAnswer) into(v any) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.text), v); err != nil {
		s.t.Fatalf("%v: %s", err, s.text)
	}
}

// varying matches strings in responses that differ between runs.
var varying = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z|token=[\w.-]+|[0-9A-HJKMNP-TV-Z]{26}|127\.0\.0\.1:\d+|"WeightedHours":[\de.-]+|steps_per_second\\":\d+`)

// golden compares a response with the exact response that clients expect.
func (s compatAnswer) golden(want string) {
	s.t.Helper()
	got := varying.ReplaceAllStringFunc(s.text, func(part string) string {
		name, _, isMember := strings.Cut(part, ":")
		switch {
		case strings.HasPrefix(part, "127."):
			return "HOST"
		case isMember && name[0] == '"':
			return name + ":0"
		case strings.HasPrefix(part, "token="):
			return "token=T"
		case strings.HasPrefix(part, "steps"):
			return `steps_per_second\":0`
		case len(part) == 26:
			return "ID"
		}
		return "TIME"
	})
	must.Equal(s.t, "the answer", got, want)
}

// wait polls a job until it has ended, and returns its state.
func (h hosted) wait(u user, name string) (state string) {
	h.t.Helper()
	u.eventually(name+" ends", func() bool {
		var list struct{ Jobs []map[string]any }
		h.do("GET", "jobs?jobName="+url.QueryEscape(name), "").want(200).into(&list)
		state = fmt.Sprint(list.Jobs[0]["JobStatus"])
		return slices.Contains([]string{"complete", "stopped", "deleted", "failed", "cancelled", "error"}, strings.ToLower(state))
	})
	return state
}

func (h hosted) submit(name, typ, settings string) {
	h.t.Helper()
	if got := h.do("POST", "submit-job", fmt.Sprintf(`{"jobName":%q,"type":%q,"settings":%s}`, name, typ, settings)).want(200); got.text != name+" submitted to queue." || !strings.HasPrefix(got.header.Get("Content-Type"), "text/plain") {
		h.t.Errorf("the receipt is %q", got.text)
	}
}

func compatUser(t *testing.T) (user, hosted) {
	t.Helper()
	u := plain(t).user("lab", "ann@lab.example")
	return u, u.hosted()
}

func TestCompatRecordsOfJobs(t *testing.T) {
	t.Parallel()
	u, h := compatUser(t)
	h.submit("run1", "shell", `{"script":"echo '{\"score\": 91.2}' >out/metrics.json"}`)
	must.Equal(t, "run1", h.wait(u, "run1"), "Complete")
	h.do("POST", "submit-batch", `{"batchName":"many","type":"shell","settings":[{"script":"true"},{"script":"exit 1"}],"jobNames":["good","bad"],"maxRuntimeSeconds":60}`).
		want(200).golden(`{"batchName":"many","jobs":["good","bad"],"message":"many submitted to queue with 2 jobs."}`)
	must.Equal(t, "many", h.wait(u, "many"), "Stopped")
	const run1 = `{"Completed":"TIME","Created":"TIME","JobName":"run1","JobStatus":"Complete","Score":"{\"score\":91.2}",` +
		`"Settings":"{\"script\":\"echo '{\\\"score\\\": 91.2}' >out/metrics.json\"}","Started":"TIME","Type":"shell","User":"ann@lab.example","WeightedHours":0,` +
		`"jobName":"run1","state":"COMPLETED","status":"Complete","type":"shell"}`
	const many = `{"Completed":"TIME","Created":"TIME","JobName":"many","JobStatus":"Stopped","Settings":"shell","Started":"TIME","Type":"batch","User":"ann@lab.example",` +
		`"batchStatus":"Stopped","jobName":"many","state":"FAILED","status":"Stopped","statuses":{"Complete":1,"In Queue":0,"Running":0,"Stopped":1},"type":"batch"}`
	row := func(name, word, state, script string) string {
		return fmt.Sprintf(`{"Batch":"many","Completed":"TIME","Created":"TIME","JobName":%[1]q,"JobStatus":%[2]q,"Settings":"{\"script\":\"%[3]s\"}","Started":"TIME","Type":"shell",`+
			`"User":"ann@lab.example","WeightedHours":0,"jobName":%[1]q,"state":%[4]q,"status":%[2]q,"type":"shell"}`, name, word, script, state)
	}
	one := strings.TrimSuffix(run1, "}")
	i := strings.Index(one, `,"jobName"`) // members are sorted by name
	h.do("GET", "jobs?jobName=run1", "").want(200).golden(`{"0":` + run1 + `,` + one[1:i] + `,"jobName":"run1","jobs":[` + run1 + `],"state":"COMPLETED","status":"Complete","statuses":{"Complete":1},"type":"shell"}`)
	h.do("GET", "jobs?jobName=absent", "").want(200).golden(`{"jobs":[],"statuses":{}}`)
	const counts = `"statuses":{"Complete":1,"In Queue":0,"Running":0,"Stopped":1}`
	h.do("GET", "jobs", "").want(200).golden(`{"jobs":[` + many + `,` + run1 + `],` + counts + `}`)
	h.do("GET", "jobs?limit=5000&organization=True", "").want(200).golden(`{"jobs":[` + many + `,` + run1 + `],` + counts + `}`)
	h.do("GET", "jobs?includeSubjobs=true&limit=1", "").want(200).golden(`{"jobs":[` + many + `,` + row("good", "Complete", "COMPLETED", "true") + `,` + row("bad", "Stopped", "FAILED", "exit 1") + `],"startKey":"` +
		startKey(t, h.do("GET", "jobs?includeSubjobs=true&limit=1", "")) + `",` + counts + `}`)
	h.do("GET", "jobs?batch=many&limit=1000", "").want(200).golden(`{"jobs":[` + row("bad", "Stopped", "FAILED", "exit 1") + `,` + row("good", "Complete", "COMPLETED", "true") + `],` + counts + `}`)
	h.do("POST", "jobs/search", `{"jobNames":["run1","absent","many"]}`).want(200).golden(`{"jobs":[` + run1 + `,` + many + `],"statuses":{"Complete":1,"Stopped":1}}`)
	second := h.do("GET", "jobs?limit=1&startKey="+url.QueryEscape(startKey(t, h.do("GET", "jobs?limit=1", ""))), "").want(200)
	second.golden(`{"jobs":[` + run1 + `],` + counts + `}`)
	h.do("GET", "jobs?limit=0", "").want(400)
	h.do("GET", "jobs?startKey=nonsense", "").want(400)
}

func startKey(t *testing.T, s compatAnswer) string {
	t.Helper()
	var page struct{ StartKey string }
	s.into(&page)
	if page.StartKey == "" {
		t.Error("there is no startKey")
	}
	return page.StartKey
}

// TestCompatListsMoreThanAPageOfTheAPI lists 250 jobs, more than a page of molrun's own
// API.
func TestCompatListsMoreThanAPageOfTheAPI(t *testing.T) {
	t.Parallel()
	_, h := compatUser(t)
	rows := strings.TrimSuffix(strings.Repeat(`{"script":"true"},`, 250), ",")
	h.do("POST", "submit-batch", `{"batchName":"b","type":"shell","settings":[`+rows+`]}`).want(200)
	for limit, want := range map[string]int{"&limit=1000": 250, "&limit=230": 230, "": 50} {
		var list struct {
			Jobs     []map[string]any
			StartKey *string
		}
		h.do("GET", "jobs?batch=b"+limit, "").want(200).into(&list)
		if len(list.Jobs) != want || (list.StartKey == nil) != (want == 250) {
			t.Errorf("limit %q: %d jobs, startKey %v", limit, len(list.Jobs), list.StartKey)
		}
	}
}

// TestCompatFromUploadToResult sends the same requests as the hosted service's
// command-line client.
func TestCompatFromUploadToResult(t *testing.T) {
	t.Parallel()
	u, h := compatUser(t)
	var link struct{ UploadURL, FileURL string }
	h.do("POST", "getPresignedUploadUrl", `{"filename":"a.txt","contentType":"application/octet-stream"}`).want(200).into(&link)
	h.do("PUT", link.UploadURL, "hello\n", "Content-Type", "application/octet-stream").want(200)
	h.do("PUT", link.UploadURL, "other\n").want(409) // because the upload is already complete
	h.do("GET", "files", "").want(200).golden(`["a.txt"]`)
	if got := h.do("GET", link.FileURL, "").want(200); got.text != "hello" {
		t.Errorf("fileUrl has %q", got.text)
	}

	const body = `{"jobName":"m1","type":"measure","settings":{"data":"a.txt"}}`
	var verdict struct {
		Valid      bool
		Normalized json.RawMessage
	}
	h.do("POST", "validate-job", body).want(200).into(&verdict)
	if !verdict.Valid {
		t.Error("it is not valid")
	}
	h.do("POST", "submit-job", body).want(200)
	// Newer scripts send the normalized settings and older ones the original settings;
	// both mean the same job.
	h.do("POST", "submit-job", `{"jobName":"m1","type":"measure","settings":`+string(verdict.Normalized)+`,"jobEmail":"ann@lab.example","projectTag":"p","project":""}`).want(200)
	h.do("POST", "submit-job", `{"jobName":"m1","type":"shell","settings":{"script":"true"}}`).want(409).
		golden(`{"error":"Job \"m1\" already exists and differs in type; choose another jobName, or send the original submission again to get that job.","code":"JOB_ALREADY_EXISTS","detail":[]}`)
	h.wait(u, "m1")
	var target string
	answer := h.do("POST", "result", `{"jobName":"m1"}`).want(200)
	answer.into(&target)
	must.Equal(t, "the link", answer.header.Get("Content-Type"), "application/json")
	if got := h.do("GET", target, "").want(200); !strings.HasPrefix(got.text, "PK") {
		t.Errorf("the result is %.20q", got.text)
	}
	h.do("POST", "results", `{"jobName":"m1","fileName":"metrics.json"}`).want(200).into(&target)
	if got := h.do("GET", target, ""); got.text != `{"bytes": 6, "number": hello}` {
		t.Errorf("metrics.json is %q", got.text)
	}
	h.do("POST", "result", `{"jobName":"m1","fileName":"output.log"}`).want(200)
	h.do("DELETE", "delete-job", `{"jobName":"m1"}`).want(200).golden(`{"message":"m1 was deleted."}`)
	h.do("POST", "delete-job", `{"jobName":"m1"}`).want(404)
}

func TestCompatLogsAndStops(t *testing.T) {
	t.Parallel()
	u, h := compatUser(t)
	h.submit("fails", "shell", `{"script":"for i in 1 2 3; do echo line $i; done; exit 1"}`)
	must.Equal(t, "it", h.wait(u, "fails"), "Stopped")
	h.do("GET", "catalog/jobs/fails/logs?maxLines=2", "").want(200).golden(`{"log":"line 2\nline 3\n"}`)
	h.do("GET", "catalog/jobs/fails/logs", "").want(200).golden(`{"log":"line 1\nline 2\nline 3\n"}`)
	h.do("GET", "catalog/jobs/absent/logs", "").want(404)
	h.do("GET", "catalog/jobs/fails/logs?maxLines=x", "").want(400)
	h.do("POST", "result", `{"jobName":"fails"}`).want(400)
	var target string
	h.do("POST", "result", `{"jobName":"fails","fileName":"output.log"}`).want(200).into(&target)
	if got := h.do("GET", target, "").want(200); got.text != "line 1\nline 2\nline 3" {
		t.Errorf("output.log is %q", got.text)
	}
	h.do("GET", "log/nonsense", "").want(403)
	h.do("DELETE", "delete-job", `{"jobName":"fails"}`).want(200)
	h.do("GET", target, "").want(404)
	h.submit("fails", "shell", `{"script":"echo of another job; exit 1"}`)
	h.wait(u, "fails")
	h.do("GET", target, "").want(403)
	h.submit("quiet", "shell", `{"script":"sleep 600"}`)
	h.do("GET", "catalog/jobs/quiet/logs", "").want(200).golden(`{"hint":"quiet has printed nothing yet.","log":""}`)
	h.do("POST", "cancelJob", `{"jobName":"quiet"}`).want(200).golden(`{"message":"quiet is being stopped."}`)
	h.do("POST", "submit-batch", `{"batchName":"b","type":"shell","settings":[{"script":"sleep 600"}]}`).want(200)
	h.do("POST", "cancelBatch", `{"batchName":"b"}`).want(200)
	if state := h.wait(u, "b"); state != "Stopped" {
		t.Errorf("b is %s", state)
	}
	h.do("POST", "cancelJob", `{}`).want(400).golden(`{"error":"send jobName, the name of a job","code":"INVALID","detail":[]}`)
}

func TestCompatFiles(t *testing.T) {
	t.Parallel()
	_, h := compatUser(t)
	h.do("PUT", "upload/a.txt", "1", "Content-Type", "application/x-www-form-urlencoded").want(200).
		golden(`{"fileId":"ID","fileUrl":"http://HOST/blobs/ID/a.txt?token=T","filename":"a.txt","message":"a.txt was uploaded.","size":1}`)
	h.do("PUT", "upload/b.txt?folder=set", "22", "Expect", "100-continue").want(200)
	h.do("PUT", "upload/set/c%20d.txt", "333").want(200)
	h.send("PUT", "upload/chunked.txt", io.MultiReader(strings.NewReader("4444"))).want(200)
	h.do("PUT", "upload/a.txt", "newer").want(200)
	var links struct{ UploadURL, Filename string }
	h.do("PUT", "upload/later.txt", "").want(200).into(&links) // without a request body, the response contains links
	h.do("GET", "files", "").want(200).golden(`["a.txt","chunked.txt"]`)
	h.do("GET", "files?folder=set", "").want(200).golden(`["set/c d.txt","set/b.txt"]`)
	h.do("GET", "files?includeAll=True", "").want(200).golden(`["a.txt","chunked.txt","set/c d.txt","set/b.txt"]`)
	h.do("GET", "files?includeFolders=true", "").want(200).golden(`["a.txt","chunked.txt","set/"]`)
	h.do("GET", "files?includeMetadata=true", "").want(200).golden(`[{"name":"a.txt","size":5,"lastModified":"TIME"},{"name":"chunked.txt","size":4,"lastModified":"TIME"}]`)
	h.do("GET", "getFolders?limit=10&loadAll=true", "").want(200).golden(`{"folders":["set"]}`)
	h.do("PUT", links.UploadURL, "x").want(200)
	h.do("GET", "delete-file?filePath=a.txt", "").want(405)
	h.do("DELETE", "delete-file?filePath=a.txt", "").want(200).golden(`{"message":"a.txt was deleted."}`)
	h.do("DELETE", "delete-file?filePath=a.txt", "").want(404).golden(`{"error":"File a.txt was not found.","code":"NOT_FOUND","detail":[]}`)
	h.do("POST", "delete-file", `{"filename":"set/b.txt"}`).want(200)
	h.do("DELETE", "delete-file?folder=set", "").want(200)
	h.do("DELETE", "delete-file", "").want(400)
	h.do("GET", "files?includeAll=true", "").want(200).golden(`["later.txt","chunked.txt"]`)
	h.do("PUT", "upload/..%2Fx", "1").want(400)
	h.do("PUT", "upload/", "1").want(404)
	h.do("POST", "getPresignedUploadUrl", `{}`).want(400)
	h.do("PUT", strings.Replace(links.UploadURL, "token=", "token=x", 1), "x").want(403)
}

func TestCompatFindsFilesBySeveralNames(t *testing.T) {
	t.Parallel()
	u, h := compatUser(t)
	h.do("PUT", "upload/a.txt", "11111111").want(200)
	h.do("PUT", "upload/set/b.txt", "22222222").want(200)
	h.submit("makes", "shell", `{"script":"mkdir out/deep; printf 33333333 >out/deep/c.txt; printf 44444444 >out/b.txt"}`)
	h.submit("set", "shell", `{"script":"printf 55555555 >out/b.txt; printf 66666666 >out/only.txt"}`)
	h.wait(u, "makes")
	h.wait(u, "set")
	number := func(name string) any {
		var j map[string]any
		h.do("GET", "jobs?jobName="+name, "").into(&j)
		var score map[string]any
		must.OK(t, json.Unmarshal([]byte(fmt.Sprint(j["Score"])), &score))
		return score["number"]
	}
	for i, tt := range []struct {
		named string
		want  float64
	}{
		{"a.txt", 11111111},
		{"inputs/a.txt", 11111111},
		{"set/b.txt", 22222222}, // an upload takes precedence over a job's result
		{"makes/deep/c.txt", 33333333},
		{"makes/b.txt", 44444444},
		{"set/only.txt", 66666666},
		{"job:makes/b.txt", 44444444},
		{"77777777\n", 77777777},
	} {
		name := fmt.Sprintf("finds%d", i)
		h.submit(name, "measure", fmt.Sprintf(`{"data":%q}`, tt.named))
		h.submit(name, "measure", fmt.Sprintf(`{"data":%q}`, tt.named)) // resubmitting returns the same job
		h.wait(u, name)
		if got := number(name); got != tt.want {
			t.Errorf("%q is the file %v, want %v", tt.named, got, tt.want)
		}
	}
	h.do("POST", "submit-job", `{"jobName":"x","type":"measure","settings":{"data":"gone.txt"}}`).want(400).
		golden(`{"error":"data: File gone.txt has not been uploaded.","code":"INVALID","detail":[{"loc":["body","settings","data"],"msg":"File gone.txt has not been uploaded.","type":"file"}]}`)
	h.do("POST", "submit-job", `{"jobName":"x","type":"measure","settings":{"data":"nowhere/gone.txt"}}`).want(400).
		golden(`{"error":"data: File nowhere/gone.txt has not been uploaded.","code":"INVALID","detail":[{"loc":["body","settings","data"],"msg":"File nowhere/gone.txt has not been uploaded.","type":"file"}]}`)
}

func TestCompatValidates(t *testing.T) {
	t.Parallel()
	_, h := compatUser(t)
	h.do("POST", "validate-job", `{"jobName":"v","type":"shell","settings":{"scrip":1}}`).want(200).
		golden(`{"job_name":"v","valid":false,"error":"scrip: shell has no setting \"scrip\"; did you mean \"script\"?; script: is required","missing_fields":["script"],"unrecognized_settings":["scrip"]}`)
	h.do("POST", "validate-job", `{"batchName":"b","type":"shell","settings":[{"script":"true"},{}],"jobNames":["one","two"]}`).want(200).
		golden(`{"valid":false,"results":[{"index":0,"job_name":"one","valid":true,"normalized":{"cpus":1,"gpus":0,"script":"true"},"missing_fields":[],"unrecognized_settings":[]},` +
			`{"index":1,"job_name":"two","valid":false,"error":"script: is required","missing_fields":["script"],"unrecognized_settings":[]}],"job_name":"b"}`)
	h.do("POST", "validate-job", `{"jobName":"v","type":"absent","settings":{}}`).want(200)
	for body, status := range map[string]int{
		``: 200, `[]`: 400, `{`: 400, `{"settings":5}`: 400, `{"settings":[5]}`: 400, `{} {}`: 400, `{"settings":null,"type":[]}`: 200, "\xff": 400,
	} {
		if got := h.do("POST", "validate-job", body); got.status != status {
			t.Errorf("%q: status %d: %s", body, got.status, got.text)
		}
	}
}

func TestCompatCatalogue(t *testing.T) {
	t.Parallel()
	_, h := compatUser(t)
	var tools []struct {
		Name, DisplayName, Description string
		Settings                       []struct{ Name, Type string }
	}
	h.do("GET", "tools", "").want(200).into(&tools)
	i := slices.IndexFunc(tools, func(t struct {
		Name, DisplayName, Description string
		Settings                       []struct{ Name, Type string }
	},
	) bool {
		return t.Name == "measure"
	})
	if i < 0 || tools[i].Settings[0].Name != "data" || tools[i].Settings[0].Type != "file" {
		t.Errorf("tools: %+v", tools)
	}
	const schema = `{"categories":[],"description":"","displayName":"Run a script","exampleJob":{"jobName":"shell-example","settings":{},"type":"shell"},"name":"shell",`
	for _, path := range []string{"tools/shell/schema", "catalog/tools/shell/schema"} {
		if got := h.do("GET", path, "").want(200); !strings.HasPrefix(got.text, schema) {
			t.Errorf("%s: %s", path, got.text)
		}
		h.do("GET", strings.Replace(path, "shell", "absent", 1), "").want(404)
	}
	var types struct{ JobTypes []string }
	h.do("GET", "job-types", "").want(200).into(&types)
	if !slices.Contains(types.JobTypes, "cg-idp") {
		t.Errorf("job-types: %v", types)
	}
	var found struct {
		Tools      []struct{ Name string }
		TotalTools int
	}
	h.do("GET", "catalog/tools?modality=protein&function=molecular-dynamics&search=disordered&custom=true", "").want(200).into(&found)
	if found.TotalTools != 2 || found.Tools[0].Name != "cg-condensate" || found.Tools[1].Name != "cg-idp" {
		t.Errorf("found %+v", found)
	}
	h.do("GET", "catalog/tools?modality=nothing", "").want(200).golden(`{"tools":[],"totalTools":0}`)
	for _, path := range []string{"modalities", "functions"} {
		var groups map[string][]struct {
			Value, Label string
			ToolCount    int
		}
		h.do("GET", "catalog/"+path, "").want(200).into(&groups)
		if list := groups[path]; len(list) == 0 || list[0].Label == "" || list[0].ToolCount == 0 {
			t.Errorf("%s: %+v", path, groups)
		}
	}
}

func TestCompatRefusals(t *testing.T) {
	t.Parallel()
	u, h := compatUser(t)
	if got := (hosted{t, h.base, "molrun_wrong"}).do("GET", "jobs?limit=1", "").want(401); !strings.Contains(got.text, "API key") || !strings.HasPrefix(got.text, `{"error":"`) {
		t.Errorf("401: %s", got.text)
	}
	viewer := u.instance.user("lab", "vic@lab.example", "--role", "viewer").hosted()
	viewer.do("GET", "jobs", "").want(200)
	for _, path := range []string{"submit-job", "submit-batch", "cancelJob", "delete-job", "getPresignedUploadUrl"} {
		body := `{"jobName":"x","type":"shell","settings":{"script":"true"},"filename":"a.txt"}`
		if path == "submit-batch" {
			body = `{"batchName":"x","type":"shell","settings":[{"script":"true"}]}`
		}
		viewer.do("POST", path, body).want(403)
	}
	for _, body := range []string{`{"batchName":"b","type":"shell","jobs":[{"script":"true"}]}`, `{"batchName":"b","jobs":[{"tool":"shell","settings":{},"job_name":"a"}]}`} {
		if got := h.do("POST", "submit-batch", body).want(400); !strings.Contains(got.text, "settings must be a list") {
			t.Errorf("%s: %s", body, got.text)
		}
	}
	h.do("POST", "submit-job", `{"jobName":"x","type":"shell","settings":{"script":"true"},"nonsense":1}`).want(400)
	h.do("POST", "submit-job", `{"jobName":"a/b","type":"shell","settings":{"script":"true"}}`).want(400)
	h.do("POST", "submit-job", `{"jobName":"x\u200b","type":"shell","settings":{"script":"true"}}`).want(400)
	names := strings.Repeat(`"x",`, 1001)
	h.do("POST", "jobs/search", `{"jobNames":[`+names[:len(names)-1]+`]}`).want(400)
	h.do("POST", "jobs/search", `{"jobNames":[1]}`).want(400)
	h.do("POST", "jobs/search", `{}`).want(400)
	h.send("POST", "submit-job", io.LimitReader(endless(1<<40), 100<<20)).want(413)
	h.do("GET", "nothing", "").want(404).golden(`{"error":"Nothing with this name exists.","code":"NOT_FOUND","detail":[]}`)
	if got := h.do("DELETE", "jobs", "").want(405); got.header.Get("Allow") != "GET" {
		t.Errorf("Allow: %s", got.header.Get("Allow"))
	}
}

// TestCompatShowsNothingOfAnotherOrganization sends names from another organization, and
// unknown names, to each route: the responses are the same.
func TestCompatShowsNothingOfAnotherOrganization(t *testing.T) {
	t.Parallel()
	u, h := compatUser(t)
	h.do("PUT", "upload/letter.txt?folder=private", "secret").want(200)
	h.submit("theirs", "shell", `{"script":"echo secret >out/secret.txt; echo secret"}`)
	h.do("POST", "submit-batch", `{"batchName":"their-batch","type":"shell","settings":[{"script":"true"}]}`).want(200)
	h.wait(u, "theirs")
	h.wait(u, "their-batch")
	before := h.do("GET", "jobs", "").text + h.do("GET", "files?includeAll=true", "").text
	eve := u.instance.user("others", "eve@others.example").hosted()
	for route, body := range map[string]string{
		"GET jobs?jobName=NAME": "", "GET jobs?batch=NAME": "", "GET catalog/jobs/NAME/logs": "",
		"GET jobs?jobEmail=NAME@lab.example": "", "GET files?folder=NAME": "", "DELETE delete-file?folder=NAME": "",
		"POST jobs/search": `{"jobNames":["NAME"]}`, "POST result": `{"jobName":"NAME"}`, "POST results": `{"jobName":"NAME","fileName":"secret.txt"}`,
		"POST result ": `{"jobName":"NAME","fileName":"output.log"}`, "POST cancelJob": `{"jobName":"NAME"}`, "POST cancelBatch": `{"batchName":"NAME"}`,
		"DELETE delete-job": `{"jobName":"NAME"}`, "POST delete-job": `{"jobName":"NAME"}`, "POST delete-file": `{"filePath":"NAME/letter.txt"}`,
		"POST validate-job": `{"jobName":"v","type":"measure","settings":{"data":"NAME/letter.txt"}}`,
		"POST submit-job":   `{"jobName":"v","type":"measure","settings":{"data":"NAME/secret.txt"}}`,
		"POST submit-batch": `{"batchName":"v","type":"measure","settings":[{"data":"NAME/secret.txt"}]}`,
	} {
		method, path, _ := strings.Cut(strings.TrimSpace(route), " ")
		try := func(name string) string {
			got := eve.do(method, strings.ReplaceAll(path, "NAME", name), strings.ReplaceAll(body, "NAME", name))
			return fmt.Sprint(got.status, strings.ReplaceAll(got.text, name, "NAME"))
		}
		for _, name := range []string{"theirs", "their-batch", "private"} {
			if theirs, absent := try(name), try("nothing-at-all"); theirs != absent {
				t.Errorf("%s of %s: %s, and of nothing: %s", route, name, theirs, absent)
			}
		}
	}
	for _, route := range []string{"jobs", "jobs?organization=true", "files?includeAll=true", "getFolders"} {
		if got := eve.do("GET", route, "").want(200); strings.Contains(got.text, "their") || strings.Contains(got.text, "private") {
			t.Errorf("%s: %s", route, got.text)
		}
	}
	must.Equal(t, "what the owner has", h.do("GET", "jobs", "").text+h.do("GET", "files?includeAll=true", "").text, before)
}

func TestCompatCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	u := startServer(t, serverOptions{env: []string{"MOLRUN_COMPAT=false"}}).user("lab", "ann@lab.example")
	if got := u.hosted().do("GET", "jobs", "").want(404); strings.Contains(got.text, `"error":"`) {
		t.Errorf("the mount answers: %s", got.text)
	}
}

// TestCompatUploadsThatBreakLeaveNothing breaks connections in the middle of a file.
func TestCompatUploadsThatBreakLeaveNothing(t *testing.T) {
	t.Parallel()
	_, h := compatUser(t)
	r, err := http.NewRequestWithContext(t.Context(), "PUT", h.base+"upload/half.txt", io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), failing{}))
	must.OK(t, err)
	r.Header.Set("x-api-key", h.key)
	r.ContentLength = 2 << 20
	if resp, err := http.DefaultClient.Do(r); err == nil {
		resp.Body.Close()
		t.Errorf("half a file is answered with %d", resp.StatusCode)
	}
	h.do("GET", "files?includeAll=true", "").want(200).golden(`[]`)
}

// failing is a reader that always fails.
type failing struct{}

// Read implements io.Reader.
func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
