package web_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/must"
)

func TestUploadIsCreatedSentAndCompleted(t *testing.T) {
	s := start(t)
	grant := s.want(200, "PUT", "/upload/hst5.fasta?folder=a/b", "").fields(t)
	id := grant["fileId"].(string)
	same(t, "grant", []any{grant["status"], grant["filename"], grant["folder"]}, []any{"ready", "hst5.fasta", "a/b"})
	if !strings.HasPrefix(grant["uploadUrl"].(string), s.url+"/blobs/") {
		t.Errorf("uploadUrl is %v", grant["uploadUrl"])
	}
	same(t, "too early", s.want(409, "POST", "/upload/"+id+"/complete", "").code(), "UPLOAD_NOT_RECEIVED")
	again := s.want(200, "POST", "/upload/"+id+"/link", "").fields(t)
	same(t, "new links", []any{again["fileId"], again["filename"], again["folder"], again["uploadUrl"] == grant["uploadUrl"]}, []any{id, "hst5.fasta", "a/b", false})
	s.wantAs(s.bob, 403, "POST", "/upload/"+id+"/link", "")
	put := s.send("PUT", again["uploadUrl"].(string), ">a\nDSHAKRHH\n", "Content-Type", "text/x-fasta")
	if put.status/100 != 2 {
		t.Fatalf("PUT: %d %s", put.status, put.body)
	}
	same(t, "wrong size", s.want(422, "POST", "/upload/"+id+"/complete", `{"size":1}`).faults(t), []string{"body.size value"})
	s.wantAs(s.bob, 403, "POST", "/upload/"+id+"/complete", "")
	done := s.want(200, "POST", "/upload/"+id+"/complete", `{"size":12}`)
	same(t, "repeated", s.want(200, "POST", "/upload/"+id+"/complete", "{}").body, done.body)
	same(t, "links of a completed one", s.want(409, "POST", "/upload/"+id+"/link", "").code(), "UPLOAD_COMPLETED")
	file := done.fields(t)
	same(t, "file", []any{file["status"], file["filename"], file["folder"], file["size"], file["sha256"], file["contentType"]},
		[]any{"completed", "hst5.fasta", "a/b", 12.0, sha256Hex(">a\nDSHAKRHH\n"), "text/x-fasta"})
	same(t, "download", s.send("GET", grant["downloadUrl"].(string), "").body, ">a\nDSHAKRHH\n")
	late := s.send("PUT", grant["uploadUrl"].(string), "other", "Content-Type", "text/x-fasta")
	same(t, "late PUT", []any{late.status, late.code()}, []any{409, "UPLOAD_COMPLETED"})
}

func TestPartsAreRefusedInTheWordsOfTheDraft(t *testing.T) {
	s := start(t)
	link := s.want(200, "PUT", "/upload/a.txt", "").fields(t)["uploadUrl"].(string)
	same(t, "the first part", s.send("PUT", link, "abc", "Upload-Complete", "?0", "Upload-Length", "6").status, 201)
	for _, tt := range []struct{ offset, length, problem string }{
		{"4", "6", "mismatching-upload-offset"}, {"3", "7", "inconsistent-upload-length"},
	} {
		a := s.send("PATCH", link, "e", "Content-Type", "application/partial-upload", "Upload-Offset", tt.offset, "Upload-Complete", "?0", "Upload-Length", tt.length)
		same(t, tt.problem, []any{a.header.Get("Content-Type"), a.header.Get("Upload-Offset"), a.fields(t)["type"]},
			[]any{"application/problem+json", "3", "https://iana.org/assignments/http-problem-types#" + tt.problem})
	}
}

func TestFilesAreListedAndDeleted(t *testing.T) {
	s := start(t)
	first := s.upload("a.pdb", "ATOM 1")
	second := s.upload("b.pdb", "ATOM 2")
	page := s.want(200, "GET", "/files?limit=1", "").fields(t)
	same(t, "newest", page["files"].([]any)[0].(map[string]any)["fileId"], any(second))
	rest := s.want(200, "GET", "/files?limit=1&startKey="+page["startKey"].(string), "").fields(t)["files"].([]any)[0].(map[string]any)
	same(t, "next", []any{rest["fileId"], rest["email"]}, []any{first, "ann@lab.example"})
	for query, n := range map[string]int{"": 0, "?organization=true": 2, "?organization=true&folder=inputs": 2, "?organization=true&folder=other": 0} {
		same(t, query, len(s.as(s.bob, "GET", "/files"+query, "").fields(t)["files"].([]any)), n)
	}
	s.want(200, "POST", "/submit-job", `{"jobName":"a","type":"echo","settings":{"structure":"`+first+`"}}`)
	same(t, "in use", s.want(409, "DELETE", "/files/"+first, "").code(), "FILE_IN_USE")
	s.wantAs(s.bob, 403, "DELETE", "/files/"+second, "")
	same(t, "faults", s.want(422, "GET", "/files?limit=0&folder=&organization=2&startKey=abc", "").faults(t),
		[]string{"query.folder value", "query.limit value", "query.organization type", "query.startKey value"})
	s.want(204, "DELETE", "/files/"+second, "")
	s.want(404, "DELETE", "/files/"+second, "")
	s.want(404, "DELETE", "/files/nothing", "")
	third := s.upload("c.pdb", "ATOM 3")
	s.wantAs(s.root, 204, "DELETE", "/files/"+third, "")
}

func TestFileInAnUploadRequestIsRejected(t *testing.T) {
	s := start(t)
	long := strings.Repeat("x", 100_000)
	for _, tt := range []struct {
		body, contentType string
		status            int
	}{
		{"", "", 200},
		{"", "text/plain", 200},
		{"{}", "", 200},
		{" { }\n", "application/json", 200},
		{"null", "application/json", 200},
		{"[]", "application/json", 422},
		{`{"a":1}`, "application/json", 422},
		{">a\nDSHAKRHH\n", "", 422},
		{long, "application/octet-stream", 422},
	} {
		a := s.send("PUT", "/upload/a.txt", tt.body, "x-api-key", s.ann, "Content-Type", tt.contentType)
		if a.status != tt.status || tt.status == 422 && (a.faults(t)[0] != "body value" || !strings.Contains(a.body, "uploadUrl")) {
			t.Errorf("%.20q: %d %s", tt.body, a.status, a.body)
		}
	}
	same(t, "in chunks", s.chunked(call{"PUT", "/upload/a.txt"}, long).status, 422)
	same(t, "nothing in chunks", s.chunked(call{"PUT", "/upload/a.txt"}, "").status, 200)
}

func TestNamesOfUploads(t *testing.T) {
	s := start(t)
	tests := []struct {
		name, folder string // an empty folder is not sent
		faults       []string
	}{
		{"a.txt", "", nil},
		{"蛋白 质.pdb", "x/y/z", nil},
		{"100%25.txt", "", nil},
		{"a/b", "", []string{"path.filename value"}},
		{"\xff", "", []string{"path.filename value"}},
		{"a", "..", []string{"query.folder value"}},
		{"a\n", "a//b", []string{"path.filename value", "query.folder value"}},
	}
	for _, tt := range tests {
		path := "/upload/" + escaped(tt.name)
		if tt.folder != "" {
			path += "?folder=" + url.QueryEscape(tt.folder)
		}
		if tt.faults != nil {
			same(t, tt.name, s.want(422, "PUT", path, "").faults(t), tt.faults)
		} else {
			same(t, tt.name, s.want(200, "PUT", path, "").fields(t)["filename"], any(tt.name))
		}
	}
	decomposed := s.want(200, "PUT", "/upload/"+escaped("Pru\u0308fling.pdb")+"?folder="+url.QueryEscape("a/u\u0308"), "").fields(t)
	same(t, "a decomposed name", []any{decomposed["filename"], decomposed["folder"]}, []any{"Prüfling.pdb", "a/ü"})
	same(t, "an empty folder", s.want(422, "PUT", "/upload/a.txt?folder=", "").faults(t), []string{"query.folder value"})
}

func TestInstructionsHaveTheContentTypeOfTheExtension(t *testing.T) {
	s := start(t)
	for name, want := range map[string]string{
		"a.pdb": "chemical/x-pdb", "a.FASTA": "text/x-fasta", "a.json": "application/json", "a.txt": "text/plain", "a.csv": "text/csv",
		"a.html": "application/octet-stream", "a": "application/octet-stream", "a.pdb.gz": "application/gzip",
	} {
		grant := s.want(200, "PUT", "/upload/"+name, "").fields(t)
		instructions := grant["instructions"].(map[string]any)
		same(t, name, instructions["headers"], any(map[string]any{"Content-Type": want}))
		if instructions["upload"] == "" || grant["folder"] != "inputs" {
			t.Errorf("%s: %v", name, grant)
		}
	}
}

func TestLinksBeginWithThePublicURLOrTheRequestedHost(t *testing.T) {
	s := start(t)
	for host, status := range map[string]int{
		"molrun.lab.example": 200, "molrun.lab.example:8443": 200, "[::1]:80": 200, "a_b": 200,
		"a/b": 422, "a@b": 422, "a\"b": 422,
	} {
		r := s.request("PUT", "/upload/a.txt", "")
		r.Host = host
		r.Header.Set("X-Forwarded-Host", "evil.example")
		r.Header.Set("X-Forwarded-Proto", "https")
		a := s.do(r)
		same(t, fmt.Sprintf("Host %q", host), a.status, status)
		if status == 200 && !strings.HasPrefix(a.fields(t)["uploadUrl"].(string), "http://"+host+"/blobs/") {
			t.Errorf("Host %q: %s", host, a.body)
		}
	}
	s = start(t, func(with *setup) { with.options.PublicURL = "https://lab.example/molrun/" })
	s.submit("a")
	s.run("a", map[string]string{"out.txt": "text"})
	for _, a := range []answer{s.want(200, "PUT", "/upload/a.txt", ""), s.want(200, "POST", "/result", `{"jobName":"a"}`)} {
		if !strings.HasPrefix(a.fields(t)["downloadUrl"].(string), "https://lab.example/molrun/blobs/") {
			t.Error(a.body)
		}
	}
}

func TestCurlExampleWorksAsPasted(t *testing.T) {
	must.Installed(t, "curl")
	s := start(t)
	dir := t.TempDir()
	for _, name := range []string{"plain.pdb", "two words.fasta", `it's $HOME "quoted"; rm x.txt`, "a[1-3]{b,c}.csv", "蛋白质.json", "~", "@a"} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte("bytes of "+name), 0o600))
		grant := s.want(200, "PUT", "/upload/"+escaped(name), "").fields(t)
		line := grant["instructions"].(map[string]any)["curlExample"].(string)
		if strings.Contains(line, "\n") {
			t.Errorf("more than a line: %q", line)
		}
		sh := exec.CommandContext(t.Context(), "sh", "-c", line)
		sh.Dir = dir
		sh.Env = append(os.Environ(), "no_proxy=*")
		if out, err := sh.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
			continue
		}
		s.want(200, "POST", "/upload/"+grant["fileId"].(string)+"/complete", "")
		same(t, name, s.send("GET", grant["downloadUrl"].(string), "").body, "bytes of "+name)
	}
}

func TestSameBytesNeedNotBeSentAgain(t *testing.T) {
	s := start(t)
	digest := sha256Hex("ATOM")
	fresh := s.want(200, "PUT", "/upload/a.pdb?sha256="+digest, "").fields(t)
	same(t, "before anything was sent", []any{fresh["status"], fresh["created"]}, []any{"ready", true})
	first := s.upload("a.pdb", "ATOM")
	other := s.upload("b.pdb", "ATOM")
	s.upload("c.pdb", "HETATM")
	for _, tt := range []struct{ path, id string }{
		{"/upload/a.pdb?sha256=" + digest, first},
		{"/upload/b.pdb?sha256=" + strings.ToUpper(digest), other},
		{"/upload/new.pdb?folder=x&sha256=" + digest, other}, // the newest match
		{"/upload/c.pdb?sha256=" + digest, other},            // the upload with that name has other contents
	} {
		known := s.want(200, "PUT", tt.path, "").fields(t)
		same(t, tt.path, []any{known["fileId"], known["status"], known["created"]}, []any{tt.id, "completed", false})
		same(t, "the bytes", s.send("GET", known["downloadUrl"].(string), "").body, "ATOM")
	}
	same(t, "another member", s.as(s.bob, "PUT", "/upload/a.pdb?sha256="+digest, "").fields(t)["created"], true)
	ids := func(key, query string) (ids []string) {
		for _, f := range s.as(key, "GET", "/files?sha256="+digest+query, "").fields(t)["files"].([]any) {
			ids = append(ids, f.(map[string]any)["fileId"].(string))
		}
		return ids
	}
	same(t, "own files", ids(s.ann, ""), []string{other, first})
	same(t, "in a folder", ids(s.ann, "&folder=inputs&limit=1"), []string{other})
	same(t, "in another folder", ids(s.ann, "&folder=none"), []string(nil))
	same(t, "another member's", ids(s.bob, ""), []string(nil))
	same(t, "all members'", ids(s.bob, "&organization=true"), []string{other, first})
	s.want(204, "DELETE", "/files/"+other, "")
	same(t, "after deletion", s.want(200, "PUT", "/upload/b.pdb?sha256="+digest, "").fields(t)["fileId"], any(first))
	for _, bad := range []string{"", "ab", digest + "00", strings.Repeat("g", 64)} {
		same(t, bad, s.want(422, "PUT", "/upload/a.pdb?sha256="+bad, "").faults(t), []string{"query.sha256 value"})
	}
}
