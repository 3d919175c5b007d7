package e2e

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// claims returns the claims of a link's token.
func claims(t *testing.T, link string) (c map[string]any) {
	t.Helper()
	_, token, _ := strings.Cut(link, "?token=")
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("no token in %q", link)
	}
	for i, into := range []any{&map[string]any{}, &c} {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		must.OK(t, err)
		must.OK(t, json.Unmarshal(text, into))
		if head, ok := into.(*map[string]any); ok && i == 0 && (*head)["alg"] != "HS256" {
			t.Errorf("token signed with %v", (*head)["alg"])
		}
	}
	return c
}

func TestLinksAllowOneMethodOnOneFileWithoutAKey(t *testing.T) {
	t.Parallel()
	s := plain(t)
	u, anonymous := s.user("lab", "ann@lab.example"), user{s, ""}
	g, other := u.grant("a.txt"), u.grant("b.txt")
	u.submit("j", "shell", script("echo a > out/a; echo b > out/b"))
	u.finished("j")
	a, b := u.linkTo(`{"jobName":"j","fileName":"a"}`).DownloadURL, u.linkTo(`{"jobName":"j","fileName":"b"}`).DownloadURL
	anonymous.do("PUT", g.UploadURL, strings.NewReader("text")).want(200)
	anonymous.do("GET", g.UploadURL, nil).code(403, "LINK_INVALID")
	anonymous.do("PUT", g.DownloadURL, strings.NewReader("text")).code(403, "LINK_INVALID")
	anonymous.do("PUT", a, strings.NewReader("text")).code(403, "LINK_INVALID")
	anonymous.do("POST", a, nil).code(405, "METHOD_NOT_ALLOWED")
	if head := anonymous.do("HEAD", a, nil).want(200); head.header.Get("Content-Length") != "2" || len(head.body) != 0 {
		t.Errorf("HEAD: %v", head.header)
	}
	if got := anonymous.do("GET", a, nil).want(200); string(got.body) != "a\n" {
		t.Errorf("GET: %q", got.body)
	}
	swap := func(link, token string) string {
		path, _, _ := strings.Cut(link, "?")
		_, query, _ := strings.Cut(token, "?")
		return path + "?" + query
	}
	if got := anonymous.do("GET", swap(b, a), nil); got.status == 200 && string(got.body) != "a\n" {
		t.Errorf("the token of one file opens another: %q", got.body)
	}
	for _, link := range []string{swap(other.DownloadURL, g.DownloadURL), swap(a, g.DownloadURL), a + "x", strings.Split(a, "?")[0], a + "&token=x"} {
		anonymous.do("GET", link, nil).code(403, "LINK_INVALID")
	}
	anonymous.do("GET", other.DownloadURL, nil).code(409, "UPLOAD_NOT_RECEIVED")
	u.do("DELETE", "/files/"+g.FileID, nil).want(204)
	anonymous.do("GET", g.DownloadURL, nil).code(404, "NOT_FOUND")
	anonymous.do("PUT", g.UploadURL, strings.NewReader("text")).code(404, "NOT_FOUND")
	u.do("DELETE", "/jobs/j", nil).want(204)
	anonymous.do("GET", a, nil).code(404, "NOT_FOUND")
}

func TestOtherProgramsCanReadTheArchive(t *testing.T) {
	t.Parallel()
	u := plain(t).user("lab", "ann@lab.example")
	u.submit("j", "shell", script(`mkdir -p "out/ä b/c"; echo 1 > "out/ä b/c/1.txt"; : > out/empty; head -c 100000 /dev/urandom > out/random; echo mine > out/job.json`))
	u.finished("j")
	u.batch("b", "shell", script("echo 1 > out/a"), script("echo 2 > out/a"))
	u.finished("b")
	for _, name := range []string{"j", "b"} {
		file := filepath.Join(t.TempDir(), "a.zip")
		must.OK(t, os.WriteFile(file, u.result(name, ""), 0o600))
		for _, argv := range [][]string{{"unzip", "-tqq", file}, {"python3", "-m", "zipfile", "-t", file}} {
			if _, err := exec.LookPath(argv[0]); err != nil {
				t.Logf("%s is not installed", argv[0])
				continue
			}
			out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
			if err != nil || strings.Contains(string(out), "corrupted") {
				t.Errorf("%s: %v\n%s", argv[0], err, out)
			}
		}
	}
	files := unzip(t, u.result("j", ""))
	if files["output/job.json"] != "mine\n" || !strings.Contains(files["job.json"], `"jobName":"j"`) || files["ä b/c/1.txt"] != "1\n" {
		t.Errorf("files of the archive: %q", sortedNames(files))
	}
	must.Equal(t, "rows in the archive", sortedNames(unzip(t, u.result("b", ""))), []string{"b-1/a", "b-1/job.json", "b-1/log.txt", "b-2/a", "b-2/job.json", "b-2/log.txt"})
}

func TestArchiveNeedsNoSecondCopyOnDisk(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "")
	u := s.user("lab", "ann@lab.example")
	u.submit("j", "shell", script("head -c 2000000 /dev/urandom > out/large"))
	u.finished("j")
	once := func(when string) {
		t.Helper()
		var large []string
		s.stored(func(path string, info fs.FileInfo) {
			if info.Size() >= 2_000_000 && filepath.Base(path) != "jobs.db" {
				large = append(large, path)
			}
		})
		if len(large) != 1 {
			t.Errorf("%s the download, these files have the result's size: %q", when, large)
		}
	}
	once("before")
	response, err := http.Get(u.linkTo(`{"jobName":"j"}`).DownloadURL)
	must.OK(t, err)
	defer response.Body.Close()
	_, err = io.ReadFull(response.Body, make([]byte, 10_000))
	must.OK(t, err)
	once("during")
	_, err = io.Copy(io.Discard, response.Body)
	must.OK(t, err)
	once("after")
}
