package web_test

import (
	"archive/zip"
	"io"
	"strings"
	"testing"

	"molrun/app/test/must"
)

func TestResultLinkNeedsNoKey(t *testing.T) {
	s := start(t)
	s.submit("a b")
	same(t, "too early", s.want(409, "POST", "/result", `{"jobName":"a b"}`).code(), "JOB_NOT_COMPLETED")
	s.run("a%20b", map[string]string{"output/out.txt": "text", "log.txt": "log"})

	link := s.want(200, "POST", "/result", `{"jobName":"a b"}`).fields(t)
	same(t, "fileName", link["fileName"], any("a b.zip"))
	got := s.send("GET", link["downloadUrl"].(string), "")
	if got.status != 200 || float64(len(got.body)) != link["size"] {
		t.Fatalf("download: %d, %d bytes of %v", got.status, len(got.body), link["size"])
	}
	same(t, "its name", got.header.Get("Content-Disposition"), `attachment; filename="a b.zip"; filename*=UTF-8''a%20b.zip`)
	archive, err := zip.NewReader(strings.NewReader(got.body), int64(len(got.body)))
	must.OK(t, err)
	f, err := archive.Open("output/out.txt")
	must.OK(t, err)
	text, err := io.ReadAll(f)
	if err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}

	link = s.want(200, "POST", "/result", `{"jobName":"a b","fileName":"output/out.txt"}`).fields(t)
	same(t, "file", []any{link["fileName"], link["size"]}, []any{"output/out.txt", 4.0})
	got = s.send("GET", link["downloadUrl"].(string), "", "x-api-key", s.eve) // a link works for anyone who has it
	same(t, "bytes and name", []string{got.body, got.header.Get("Content-Disposition")}, []string{"text", `attachment; filename="out.txt"; filename*=UTF-8''out.txt`})
	for _, name := range []string{"out.txt", "../a", "/etc/passwd", "output"} {
		s.want(404, "POST", "/result", `{"jobName":"a b","fileName":"`+name+`"}`)
	}
	s.want(422, "POST", "/result", `{"jobName":"a b","fileName":""}`)
	s.want(404, "POST", "/result", `{"jobName":"absent"}`)
}

func TestFileNamedLikeTheArchiveTakesPrecedence(t *testing.T) {
	s := start(t)
	for name, begins := range map[string]string{
		"a": "text", // the result contains a file a.zip
		"b": "PK",   // the result contains no b.zip, so this is the archive
	} {
		s.submit(name)
		s.run(name, map[string]string{"a.zip": "text", "log.txt": "log"})
		link := s.want(200, "POST", "/result", `{"jobName":"`+name+`","fileName":"`+name+`.zip"}`).fields(t)
		got := s.send("GET", link["downloadUrl"].(string), "").body
		if !strings.HasPrefix(got, begins) || float64(len(got)) != link["size"] || link["fileName"] != name+".zip" {
			t.Errorf("%s.zip: %v, %d bytes %.20q, want %s", name, link, len(got), got, begins)
		}
	}
}

func TestAlgorithmsAreShown(t *testing.T) {
	s := start(t)
	list := s.want(200, "GET", "/algorithms", "").fields(t)["algorithms"].([]any)
	same(t, "type", list[0].(map[string]any)["type"], any("echo"))
	one := s.want(200, "GET", "/algorithms/echo?version=1", "").fields(t)
	same(t, "steps", one["schema"].(map[string]any)["properties"].(map[string]any)["steps"].(map[string]any)["maximum"], any(1000.0))
	s.want(404, "GET", "/algorithms/echo?version=2", "")
	s.want(404, "GET", "/algorithms/nothing", "")
}

func TestValidationReturnsNormalizedSettings(t *testing.T) {
	s := start(t)
	v := s.want(200, "POST", "/validate-job", `{"jobName":"a","type":"echo","settings":{}}`)
	same(t, "valid", v.body, `{"valid":true,"normalized":{"steps":10},"detail":[]}`+"\n")
	v = s.want(200, "POST", "/validate-job", `{"jobName":"a","type":"echo","settings":{"structure":"inputs/none.pdb"}}`)
	same(t, "missing file", v.fields(t)["valid"], any(false))
	s.want(404, "GET", "/jobs/a", "")
}
