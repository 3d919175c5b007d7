package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"molrun/app/test/contract"
	"molrun/app/test/must"
	"molrun/web"
)

// publicPaths need no key.
var publicPaths = []string{"/healthz", "/readyz", "/version", "/metrics", "/openapi.yaml"}

// keyedRoutes returns every route in openapi.yaml that needs a key, with its
// parameters filled in.
func keyedRoutes(t *testing.T) (routes []contract.Operation) {
	t.Helper()
	spec, err := contract.Parse(web.OpenAPI())
	must.OK(t, err)
	for _, op := range spec.Operations() {
		signsIn := op.Method == "POST" && op.Path == "/session"                                            // its body has the key
		if !slices.Contains(publicPaths, op.Path) && !signsIn && !strings.HasPrefix(op.Path, "/shared/") { // whose path is the key
			op.Path = regexp.MustCompile(`\{\w+\}`).ReplaceAllString(op.Path, "absent")
			routes = append(routes, op)
		}
	}
	if len(routes) < 17 {
		t.Fatalf("only %d routes need a key", len(routes))
	}
	return routes
}

func TestBadKeyIsRefusedBeforeTheBodyIsRead(t *testing.T) {
	t.Parallel()
	s := plain(t)
	for _, op := range keyedRoutes(t) {
		// The announced body is never sent.
		a := user{s, "none"}.raw(op.Method, op.Path, "Content-Type: application/json", "Content-Length: 1000", "Expect: 100-continue")
		if a.StatusCode != 401 {
			t.Errorf("%s %s: status %d before the body, want 401", op.Method, op.Path, a.StatusCode)
		}
	}
}

// stored calls visit for every file in the data directory.
func (s *instance) stored(visit func(path string, info fs.FileInfo)) {
	s.t.Helper()
	must.OK(s.t, filepath.WalkDir(s.data(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			visit(path, info)
		}
		return err
	}))
}

func TestOnlyTheHashOfAKeyIsStored(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	key := s.user("lab", "ann@lab.example").key
	user{s, key}.do("GET", "/jobs", nil).want(200)
	s.stop()
	secret := strings.Split(key, "_")[2]
	sum := sha256.Sum256([]byte(secret))
	found := false
	s.stored(func(path string, info fs.FileInfo) {
		text, err := os.ReadFile(path)
		must.OK(t, err)
		if strings.Contains(string(text), secret) {
			t.Errorf("%s contains the secret of a key", path)
		}
		found = found || strings.Contains(string(text), hex.EncodeToString(sum[:]))
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is open to others: %v", path, info.Mode())
		}
	})
	if !found {
		t.Error("the hash of the key is not stored")
	}
}

func TestNoKeyTokenOrLinkIsInAnyLog(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{config: "[log]\nlevel = \"debug\"\n", algorithms: map[string]string{"shell.toml": shellFile}})
	u, v := s.user("lab", "ann@lab.example"), s.user("other", "eve@other.example")
	file := u.upload("in.txt", "text")
	u.submit("j", "shell", script("cat in/input.txt > out/a; env", `,"input":"`+file+`"`))
	u.finished("j")
	log := string(u.do("GET", "/jobs/j/logs", nil).want(200).body)
	whole, part := u.linkTo(`{"jobName":"j"}`).DownloadURL, u.linkTo(`{"jobName":"j","fileName":"a"}`).DownloadURL
	var grant struct{ UploadURL, DownloadURL string }
	u.do("PUT", "/upload/x.txt", nil).want(200).into(&grant)
	u.do("GET", whole, nil, "Range", "bytes=1-2").want(206)
	u.do("GET", part, nil).want(200)
	u.do("GET", part+"x", nil).want(403)
	u.do("GET", grant.UploadURL, nil).want(403)
	u.do("GET", grant.DownloadURL, nil).want(409)
	u.do("PUT", grant.UploadURL, strings.NewReader("<p>"), "Content-Type", "text/html").want(403)
	u.do("GET", "/jobs?x-api-key="+u.key, nil).want(422)
	user{s, v.key + "x"}.do("GET", "/jobs", nil).want(401)
	user{s, ""}.do("GET", "/jobs", nil, "Authorization", "Bearer "+v.key).want(401)
	_, errs, _ := s.run("key", "list")
	s.stop()
	log += s.log.String() + errs
	if strings.Count(log, "\n") < 15 {
		t.Fatalf("the log is too short to prove anything: %s", log)
	}
	for _, secret := range []string{
		strings.Split(u.key, "_")[2], strings.Split(v.key, "_")[2], "token=", "eyJ", "Bearer", "x-api-key",
	} {
		if i := strings.Index(log, secret); i >= 0 {
			t.Errorf("a log contains %q: …%s…", secret, log[max(0, i-80):min(len(log), i+80)])
		}
	}
}

func TestEveryRequestIsOneLogLine(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "")
	u := s.user("lab", "ann@lab.example")
	file := u.upload("in.txt", "text")
	answers := []answer{
		u.do("GET", "/jobs", nil), u.do("GET", "/none", nil), user{s, ""}.do("GET", "/jobs", nil), u.do("GET", "/healthz", nil),
		u.do("POST", "/submit-job", "{"), u.do("GET", "/blobs/x", nil), u.do("DELETE", "/files/"+file, nil), u.do("PUT", "/jobs", nil),
	}
	s.stop()
	log := s.log.String()
	for _, a := range answers {
		id := a.header.Get("X-Request-Id")
		if n := strings.Count(log, fmt.Sprintf(`"request":"%s"`, id)); n != 1 {
			t.Errorf("%d log lines for request %s with status %d, want 1", n, id, a.status)
		}
	}
}
