package web_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"molrun/app/test/contract"
	"molrun/app/test/must"
)

// meaning is the kind of thing that an API input names.
type meaning string

const (
	aJob       meaning = "a job, batch or row, by name or ID"
	aFile      meaning = "an upload by ID"
	aPath      meaning = "a file of a result"
	aMember    meaning = "a member of an organization"
	aFolder    meaning = "a folder of uploads"
	aDigest    meaning = "the digest of a file"
	aCursor    meaning = "the cursor of a listing"
	aKey       meaning = "an API key by ID"
	anEvent    meaning = "a place in the events of an organization"
	aTag       meaning = "a tag of a job"
	someText   meaning = "a text that a job may have"
	references meaning = "settings, which may refer to uploads and results"
	toFollow   meaning = "the names of jobs to start after"
	sources    meaning = "what rows are made of: folders, uploads and results"
	aShare     meaning = "a share by ID"
	somePaths  meaning = "files of a result"
	aToken     meaning = "the token of a share"
	aWebhook   meaning = "a webhook by ID"
	newName    meaning = "the name that a new thing gets"
)

// inputsThatName classifies every parameter and member of openapi.yaml that can refer to
// data of a user or organization. An entry for one operation takes precedence over an
// entry for all operations.
var inputsThatName = map[string]meaning{
	"header Last-Event-ID": anEvent,

	"path email":     aMember,
	"path fileId":    aFile,
	"path id":        aShare,
	"path webhookId": aWebhook,
	"path token":     aToken,
	"path filename":  newName,
	"GET /algorithms/{type}/example/{filename} path filename": "",

	"path jobName": aJob,
	"path keyId":   aKey,
	"path path":    aPath,
	"query file":   aPath,

	"query batch":       aJob,
	"query folder":      aFolder,
	"query jobEmail":    aMember,
	"query jobName":     aJob,
	"query lastEventId": anEvent,
	"query search":      someText,
	"query sha256":      aDigest,
	"query tag":         aTag,
	"query startKey":    aCursor,

	"PUT /upload/{filename} query folder": newName,

	"body after": toFollow,

	"GET /admin/audit query key":   aKey,
	"POST /admin/prune body after": "",
	"POST /admin/prune body user":  aMember,
	"body email":                   aMember,
	"body fileName":                aPath,
	"body files":                   somePaths,

	"body jobs.after":    toFollow,
	"body jobs.settings": references,

	"body jobName":  aJob,
	"body settings": references,

	"POST /estimate body batchName":           newName,
	"POST /estimate body jobName":             newName,
	"POST /estimate body jobNames":            newName,
	"POST /estimate body jobs.jobName":        newName,
	"POST /estimate body fanOut":              sources,
	"POST /estimate body fanOut.each":         sources,
	"POST /estimate body fanOut.settings":     references,
	"POST /submit-batch body batchName":       newName,
	"POST /submit-batch body fanOut":          sources,
	"POST /submit-batch body fanOut.each":     sources,
	"POST /submit-batch body fanOut.settings": references,
	"POST /submit-batch body jobNames":        newName,
	"POST /submit-batch body jobs.jobName":    newName,
	"POST /submit-batch query after":          toFollow,
	"POST /submit-batch query batchName":      newName,
	"POST /submit-batch query tag":            "", // a new tag
	"POST /submit-job body jobName":           newName,
	"POST /validate-job body jobName":         newName,
}

// inputsThatDoNot holds all other inputs, each with a value that takes a different code
// path than omitting it. An entry for one operation takes precedence over an entry for
// all operations.
var inputsThatDoNot = map[string]any{
	"path name": "energy",
	"path type": "echo",
	"body type": "echo",
	"body key":  "molrun_a",

	"POST /admin/prune body after":       `{"organization":"lab"}`, // only a position among the caller's own jobs, whatever it contains
	"POST /admin/prune body algorithm":   "echo",
	"POST /admin/prune body dryRun":      true,
	"POST /admin/prune body endedBefore": "2999-01-01T00:00:00.000Z",
	"POST /admin/prune body failed":      false,
	"POST /admin/prune body largerThan":  0,
	"GET /admin/audit query action":      "job",

	"GET /algorithms/{type}/example/{filename} path filename": "a.pdb",
	"GET /admin/audit query failed":                           "true",
	"GET /admin/storage query by":                             "age",
	"body token":                                              "A",
	"body version":                                            "1",

	"query algorithm":      "echo",
	"query attempt":        "1",
	"query count":          "true",
	"query format":         "csv",
	"query includeSubjobs": "true",
	"query column":         "potential",
	"query points":         "3",
	"query limit":          "1",
	"query logs":           "true",
	"query offset":         "1",
	"query order":          "asc",
	"query organization":   "true",
	"query since":          "2000-01-01",
	"query sort":           "completedAt",
	"query status":         "COMPLETED",
	"query statuses":       "true",
	"query until":          "9999-01-01",
	"query version":        "1",
	"query wait":           "1s",

	"query maxRuntimeSeconds":      "60",
	"query note":                   "a note",
	"query priority":               "-1",
	"query type":                   "echo",
	"query afterAny":               "true",
	"POST /submit-batch query tag": "round:1",

	"query by":               "day",
	"GET /usage query since": time.Now().AddDate(0, 0, -3).Format(time.DateOnly),
	"GET /usage query until": time.Now().AddDate(0, 0, 3).Format(time.DateOnly),
	"body disabled":          true,
	"body expiresSeconds":    3600,
	"body name":              "a name",
	"body networks":          []any{"10.0.0.0/8", "127.0.0.1"},
	"body overlapSeconds":    60,
	"body role":              "viewer",
	"body scopes":            []any{"read"},

	"body afterAny":                        true,
	"body events":                          []any{"job.failed"},
	"body notify":                          []any{"https://hooks.example/"},
	"body url":                             "https://hooks.example/",
	"query notify":                         "https://hooks.example/",
	"GET /jobs/{jobName}/table query sort": "metric:rg_nm",
	"body cascade":                         false,
	"body jobs":                            "one that is echo",
	"body jobs.afterAny":                   true,
	"body jobs.maxRuntimeSeconds":          60,
	"body jobs.priority":                   -1,
	"body jobs.type":                       "echo",
	"body jobs.version":                    "1",
	"body maxRuntimeSeconds":               60,
	"body note":                            "a note",
	"body inputs":                          true,
	"body ttlSeconds":                      60,
	"body partial":                         true,
	"body priority":                        -1,
	"body reason":                          "a reason",
	"body size":                            4,
	"body tags":                            map[string]any{"round": "1"},
}

// TestNothingOfAnotherOrganizationIsFound fills every parameter and member in
// openapi.yaml with data of another organization, alone and together with every option.
// Each response must be the same as for something that does not exist.
func TestNothingOfAnotherOrganizationIsFound(t *testing.T) {
	readers := start(t, viewing)
	read := populate(readers)
	for _, op := range described.Spec.Operations() {
		inputs := described.Spec.Inputs(op)
		for _, in := range inputs {
			what, names := meaningOf(op, in)
			_, harmless := harmlessValue(op, in)
			if names == harmless {
				t.Errorf("%s %s has the input %s %s: say in inputsThatName or in inputsThatDoNot what it is", op.Method, op.Path, in.In, in.Name)
			}
			if names {
				t.Run(fmt.Sprintf("%s %s %s %s", op.Method, op.Path, in.In, in.Name), func(t *testing.T) {
					if onlyReads(op) {
						s := *readers
						s.t = t
						nothingIsFound(&s, read, op, inputs, in, what)
					} else {
						s := start(t, viewing)
						nothingIsFound(s, populate(s), op, inputs, in, what)
					}
				})
			}
		}
	}
}

// onlyReads reports whether requests of an operation leave no changes, so that they can
// share a service.
func onlyReads(op contract.Operation) bool {
	return op.Method == "GET" || op.Path == "/validate-job" || op.Path == "/estimate"
}

func harmlessValue(op contract.Operation, in contract.Input) (any, bool) {
	name := in.In + " " + in.Name
	if value, ok := inputsThatDoNot[op.Method+" "+op.Path+" "+name]; ok {
		return value, true
	}
	value, ok := inputsThatDoNot[name]
	return value, ok
}

func meaningOf(op contract.Operation, in contract.Input) (meaning, bool) {
	name := in.In + " " + in.Name
	if what, ok := inputsThatName[op.Method+" "+op.Path+" "+name]; ok {
		return what, what != ""
	}
	what, ok := inputsThatName[name]
	return what, ok
}

// pair is something of ann's and a counterpart that never existed.
type pair struct{ theirs, absent any }

// nothingIsFound compares the responses to eve for one input.
func nothingIsFound(s *service, w world, op contract.Operation, inputs []contract.Input, in contract.Input, what meaning) {
	t := s.t
	before := w.everything(s)
	pairs := w.pairs[what]
	if len(pairs) == 0 {
		t.Fatalf("nothing of another organization is known that is %s", what)
	}
	for _, options := range choices(op, inputs) {
		for _, p := range pairs {
			theirs := w.send(s, op, inputs, options, in, p.theirs)
			absent := w.send(s, op, inputs, options, in, p.absent)
			if theirs != absent {
				t.Errorf("with %v, the answer for %v of another organization\n%s\nand for %v, which does not exist\n%s", options, p.theirs, theirs, p.absent, absent)
			}
		}
	}
	same(t, "what the other organization has", w.everything(s), before)
}

// choices returns the sets of options to try: none, each alone, all together.
func choices(op contract.Operation, inputs []contract.Input) [][]string {
	all := []string{}
	for _, in := range inputs {
		if _, names := meaningOf(op, in); !names && !in.Required {
			all = append(all, in.In+" "+in.Name)
		}
	}
	sets := [][]string{{}}
	for _, one := range all {
		sets = append(sets, []string{one})
	}
	return append(sets, all)
}

// world is the data of both organizations.
type world struct {
	pairs map[meaning][]pair
	own   map[meaning]any // data of eve
	as    []string        // headers that identify the sender
}

// populate gives both organizations a job with a result, a batch and an upload.
func populate(s *service) world {
	const absent = "01AAAAAAAAAAAAAAAAAAAAAAAA"
	file := s.upload("theirs.pdb", "ATOM")
	s.upload("theirs-too.pdb", "THEIRS")
	s.submit("theirs")
	s.want(200, "PATCH", "/jobs/theirs", `{"tags":{"owner":"theirs"},"note":"A secret note"}`)
	s.run("theirs", map[string]string{"theirs.txt": "secret", "a.pdb": "ATOM"})
	s.want(200, "POST", "/submit-batch", `{"batchName":"theirs-batch","type":"echo","settings":[{},{}],"jobNames":["theirs-row","theirs-row-2"]}`)
	s.run("theirs-row", map[string]string{"theirs.txt": "secret"})
	w := world{
		as: []string{"x-api-key", s.eve},
		pairs: map[meaning][]pair{
			aFile:    {{file, absent}},
			aPath:    {{"theirs.txt", "absent.txt"}},
			aDigest:  {{sha256Hex("THEIRS"), sha256Hex("absent")}},
			aTag:     {{"owner:theirs", "owner:absent"}},
			someText: {{"THEIRS", "absent"}, {"owner:theirs", "absent"}, {"a secret note", "absent"}},
			aMember:  {{"ann@lab.example", "absent@lab.example"}},
			toFollow: {{[]any{"theirs"}, []any{"absent"}}, {[]any{"theirs-batch"}, []any{"absent"}}},
			newName:  {{"theirs", "absent"}, {"theirs.pdb", "absent.pdb"}, {"theirs-batch", "absent-b"}},
		},
		own: map[meaning]any{aPath: nil, aDigest: nil, aTag: nil, someText: nil, aMember: nil, aFolder: nil, toFollow: nil, aCursor: nil, anEvent: nil, somePaths: nil, references: map[string]any{}, sources: nil},
	}
	for _, name := range []string{"theirs", "theirs-batch", "theirs-row"} {
		id := s.want(200, "GET", "/jobs/"+name, "").fields(s.t)["jobId"]
		w.pairs[aJob] = append(w.pairs[aJob], pair{name, "absent"}, pair{id, absent})
		w.addReference("job:"+name+"/theirs.txt", "job:absent/theirs.txt")
		w.addReference("job:"+name+"/a.pdb", "job:absent/a.pdb")
	}
	w.addReference(file, absent)
	w.addReference("inputs/theirs.pdb", "inputs/absent.pdb")
	w.addReference("sha256:"+sha256Hex("THEIRS")+"/a.pdb", "sha256:"+sha256Hex("absent")+"/a.pdb")
	s.want(200, "PUT", "/upload/b.pdb?folder=theirs", "")
	w.pairs[aFolder] = []pair{{"theirs", "absent"}}
	s.upload("theirs.csv", "steps\n1\n")
	w.addSource("structure", "folder:inputs/theirs*.pdb", "folder:inputs/absent*.pdb")
	w.addSource("structure", "folder:theirs/*", "folder:absent/*")
	w.addSource("*", "csv:inputs/theirs.csv", "csv:inputs/absent.csv")
	w.addSource("*", "csv:"+file, "csv:"+absent)
	w.addSource("steps", "fasta:job:theirs/theirs.txt", "fasta:job:absent/theirs.txt")
	for _, listing := range []string{"/jobs?limit=1", "/jobs?limit=1&organization=true", "/files?limit=1", "/files?limit=1&organization=true", "/jobs/theirs-batch/table?limit=1"} {
		w.pairs[aCursor] = append(w.pairs[aCursor], pair{s.want(200, "GET", listing, "").fields(s.t)["startKey"], "AAAA"})
	}

	w.pairs[somePaths] = []pair{{[]any{"theirs.txt"}, []any{"absent.txt"}}}
	id, _ := s.share("theirs", "")
	w.pairs[aShare] = []pair{{id, absent}}
	revoked, token := s.share("theirs", "")
	s.want(204, "DELETE", "/shares/"+revoked, "")
	w.pairs[aToken] = []pair{{token, absent + absent}}
	w.pairs[aKey] = []pair{{strings.Split(s.ann, "_")[1], "absentabsent"}}
	hook := s.as(s.root, "POST", "/webhooks", `{"url":"https://hooks.example/theirs"}`).fields(s.t)["webhookId"]
	s.as(s.root, "POST", "/webhooks/"+hook.(string)+"/test", "")
	w.pairs[aWebhook] = []pair{{hook, absent}}
	w.pairs[anEvent] = []pair{{s.want(200, "GET", "/jobs", "").header.Get("X-Event-ID"), "1-01234567"}}

	ann := s.ann
	s.ann = s.eve // the helpers act as ann
	w.own[aFile] = s.upload("own.pdb", "ATOM")
	s.submit("own")
	s.run("own", map[string]string{"own.txt": "text"})
	w.own[aJob] = "own"
	w.own[aWebhook] = s.as(s.eve, "POST", "/webhooks", `{"url":"https://hooks.example/own"}`).fields(s.t)["webhookId"]
	w.own[aShare], w.own[aToken] = s.share("own", "")
	s.ann = ann
	return w
}

func (w world) addReference(theirs, absent string) {
	w.pairs[references] = append(w.pairs[references], pair{map[string]any{"structure": theirs}, map[string]any{"structure": absent}})
}

func (w world) addSource(setting, theirs, absent string) {
	w.pairs[sources] = append(w.pairs[sources], pair{map[string]any{setting: theirs}, map[string]any{setting: absent}})
}

// send sends eve's request with one input set to a value, the required inputs to her own
// data, and some options. It returns the response without volatile parts and without the
// value itself.
func (w world) send(s *service, op contract.Operation, inputs []contract.Input, options []string, in contract.Input, value any) string {
	s.t.Helper()
	return w.ask(s, op, inputs, options, in, value).without(value)
}

func (w world) ask(s *service, op contract.Operation, inputs []contract.Input, options []string, in contract.Input, value any) answer {
	s.t.Helper()
	path, query, body := op.Path, url.Values{}, map[string]any{}
	headers := slices.Clone(w.as)
	ofBatch := op.Path == "/submit-batch" || op.Path == "/estimate"
	for _, i := range inputs {
		what, _ := meaningOf(op, i)
		v := w.own[what]
		switch what {
		case "":
			v, _ = harmlessValue(op, i)
		case newName:
			v = fmt.Sprint("new-", value)
			if _, isMap := value.(map[string]any); isMap {
				v = "new"
			}
		}
		needed, member := i.Required, ""
		if ofBatch && i.In == "body" { // a batch has either settings of one type, or jobs
			var ofJobs bool
			_, asksJobs := strings.CutPrefix(in.Name, "jobs.")
			member, ofJobs = strings.CutPrefix(i.Name, "jobs.")
			needed = i.Name == "batchName" || !asksJobs && (i.Name == "type" || i.Name == "settings")
			if !ofJobs {
				member = ""
			}
		}
		switch chosen := slices.Contains(options, i.In+" "+i.Name); {
		case i == in:
			v = value
		case !needed && !chosen:
			continue
		}
		if i.Name == "jobs" {
			member, v = "type", "echo"
		}
		if member != "" {
			setOfJob(body, member, v)
			continue
		}
		switch i.In {
		case "path":
			path = strings.ReplaceAll(path, "{"+i.Name+"}", url.PathEscape(fmt.Sprint(v)))
		case "query":
			list, isList := v.([]any)
			if !isList {
				list = []any{v}
			}
			for _, one := range list {
				query.Add(i.Name, fmt.Sprint(one))
			}
		case "body":
			body[i.Name] = v
		case "header":
			headers = append(headers, i.Name, fmt.Sprint(v))
		default:
			s.t.Fatalf("no test sends an input in %s", i.In)
		}
	}
	if ofBatch {
		return w.sendBatch(s, op, in, query, body)
	}
	text := ""
	if len(body) > 0 {
		encoded, err := json.Marshal(body)
		must.OK(s.t, err)
		text = string(encoded)
		headers = append(headers, "Content-Type", "application/json")
	}
	a := s.send(op.Method, path+"?"+query.Encode(), text, headers...)
	if a.status >= 500 {
		s.t.Errorf("%s %s %s: %d %s", op.Method, path, text, a.status, a.body)
	}
	return a
}

// setOfJob sets a member of the only job in a batch.
func setOfJob(body map[string]any, member string, value any) {
	if body["jobs"] == nil {
		body["jobs"] = []any{map[string]any{"type": "echo", "settings": map[string]any{}}}
	}
	body["jobs"].([]any)[0].(map[string]any)[member] = value
}

// sendBatch sends a batch whose jobs are specified in the one form that supports the
// input: a table if anything is in the query.
func (w world) sendBatch(s *service, op contract.Operation, in contract.Input, query url.Values, body map[string]any) answer {
	s.t.Helper()
	kind, _, _ := strings.Cut(in.Name, ".")
	if kind == "jobs" {
		query = nil
	}
	if kind == "fanOut" {
		fanOut := map[string]any{"each": map[string]any{"steps": "fasta:inputs/own.pdb"}}
		if in.Name == "fanOut.settings" {
			fanOut["settings"] = body[in.Name]
		} else {
			fanOut["each"] = body[in.Name]
		}
		for name := range body {
			if strings.HasPrefix(name, "fanOut.") {
				delete(body, name)
			}
		}
		for _, other := range []string{"settings", "jobNames", "jobs"} {
			delete(body, other)
		}
		body["fanOut"] = fanOut
		query = nil
	} else {
		maps.DeleteFunc(body, func(name string, _ any) bool { return strings.HasPrefix(name, "fanOut") })
	}
	if len(query) > 0 {
		query.Set("type", "echo")
		if !query.Has("batchName") {
			query.Set("batchName", fmt.Sprint(body["batchName"]))
		}
		if after, ok := body["after"].([]any); ok {
			query.Set("after", fmt.Sprint(after[0]))
		}
		header, cells := "steps", "1"
		if settings, ok := body["settings"].(map[string]any); ok && settings["structure"] != nil {
			header, cells = header+",structure", cells+","+fmt.Sprint(settings["structure"])
		}
		if name, ok := body["jobNames"]; ok {
			header, cells = header+",jobName", cells+","+fmt.Sprint(name)
		}
		return s.checked(s.send("POST", "/submit-batch?"+query.Encode(), header+"\n"+cells+"\n", append(w.as, "Content-Type", "text/csv")...))
	}
	for _, list := range []string{"settings", "jobNames"} {
		if v, ok := body[list]; ok {
			body[list] = []any{v}
		}
	}
	if kind != "fanOut" && body["jobs"] == nil && body["settings"] == nil {
		body["settings"] = []any{map[string]any{}}
	}
	encoded, err := json.Marshal(body)
	must.OK(s.t, err)
	return s.checked(s.send(op.Method, op.Path, string(encoded), append(w.as, "Content-Type", "application/json")...))
}

// checked returns a response after checking that it is not an internal error.
func (s *service) checked(a answer) answer {
	s.t.Helper()
	if a.status >= 500 {
		s.t.Errorf("%d %s", a.status, a.body)
	}
	return a
}

// volatile matches text that differs between two responses to the same request.
var volatile = regexp.MustCompile(`retry: \d+|[0-9A-Z]{26}|\d{4}-\d\d-\d\dT[0-9:.]+Z|/blobs/[^"]*|molrun_\w+|"id":"[a-z]{12}"`)

// without returns the response without the text of a value.
func (a answer) without(value any) string {
	for _, name := range []string{"X-Request-Id", "Date", "Content-Length"} {
		a.header.Del(name)
	}
	text := fmt.Sprint(a.status, " ", a.header, " ", a.body)
	if settings, ok := value.(map[string]any); ok {
		value = slices.Collect(maps.Values(settings))[0]
	}
	for _, word := range strings.FieldsFunc(fmt.Sprint(value), func(r rune) bool { return strings.ContainsRune(":/[]", r) }) {
		if !slices.Contains([]string{"job", "inputs", "folder", "fasta", "csv"}, word) {
			text = strings.ReplaceAll(text, word, "it")
		}
	}
	return volatile.ReplaceAllString(text, "…")
}

// everything returns all data that ann's organization can see.
func (world) everything(s *service) map[string]string {
	all := map[string]string{}
	for _, path := range []string{"/jobs?organization=true&includeSubjobs=true&statuses=true", "/files?organization=true"} {
		all[path] = s.want(200, "GET", path, "").body
	}
	for _, path := range []string{"/admin/keys", "/admin/users"} {
		all[path] = s.as(s.root, "GET", path, "").body
	}
	return all
}
