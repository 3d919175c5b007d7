package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"molrun/app/test/contract"
	"molrun/app/test/must"
	"molrun/web"
)

// publicPaths are the paths that need no key.
var publicPaths = []string{"/healthz", "/readyz", "/version", "/metrics", "/openapi.yaml"}

// keyedRoutes returns every route in openapi.yaml that needs a key, with its path
// parameters filled in.
func keyedRoutes(t *testing.T) (routes []contract.Operation) {
	t.Helper()
	spec, err := contract.Parse(web.OpenAPI())
	must.OK(t, err)
	for _, op := range spec.Operations() {
		signsIn := op.Method == "POST" && op.Path == "/session"                                            // the request body contains the key
		if !slices.Contains(publicPaths, op.Path) && !signsIn && !strings.HasPrefix(op.Path, "/shared/") { // shared paths contain the key
			op.Path = regexp.MustCompile(`\{\w+\}`).ReplaceAllString(op.Path, "absent")
			routes = append(routes, op)
		}
	}
	if len(routes) < 17 {
		t.Fatalf("only %d routes need a key", len(routes))
	}
	return routes
}

// stored calls visit for every file in the data directory, and ignores files deleted
// during the walk.
func (s *instance) stored(visit func(path string, info fs.FileInfo)) {
	s.t.Helper()
	must.OK(s.t, filepath.WalkDir(s.data(), func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		if info, err := e.Info(); err == nil {
			visit(path, info)
		}
		return nil
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
		text := must.Read(t, path)
		if strings.Contains(text, secret) {
			t.Errorf("%s contains the secret of a key", path)
		}
		found = found || strings.Contains(text, hex.EncodeToString(sum[:]))
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is open to others: %v", path, info.Mode())
		}
	})
	if !found {
		t.Error("the hash of the key is not stored")
	}
}

func TestEveryRequestIsOneLogLine(t *testing.T) {
	t.Parallel()
	s := plain(t)
	u := s.user("lab", "ann@lab.example")
	file := u.upload("in.txt", "text")
	answers := []answer{
		u.do("GET", "/jobs", nil), u.do("GET", "/none", nil), user{s, ""}.do("GET", "/jobs", nil), u.do("GET", "/healthz", nil),
		u.do("POST", "/submit-job", "{"), u.do("GET", "/blobs/x", nil), u.do("DELETE", "/files/"+file, nil), u.do("PUT", "/jobs", nil),
	}
	for _, a := range answers {
		line := fmt.Sprintf(`"request":"%s"`, a.header.Get("X-Request-Id"))
		s.eventually("the request is logged", func() bool { return strings.Contains(s.log.String(), line) })
		if n := strings.Count(s.log.String(), line); n != 1 {
			t.Errorf("%d log lines for %s with status %d, want 1", n, line, a.status)
		}
	}
}
