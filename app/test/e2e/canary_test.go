package e2e

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// TestLogsContainNothingConfidentialFromRequests sends valid and invalid requests to all
// routes, with canaries in everything confidential: keys, tokens, queries, headers,
// bodies, sequences and file contents. No canary may appear in the service's log or in
// the audit log. Names of jobs and files are not secret.
func TestLogsContainNothingConfidentialFromRequests(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{
		config:     "[log]\nlevel = \"debug\"\n[cors]\norigins = \"https://portal.lab.example\"\n",
		algorithms: map[string]string{"shell.toml": shellFile},
	})
	u, gone := s.user("lab", "ann@lab.example"), s.user("lab", "gone@lab.example")
	const mark = "CANARY"
	headers := []string{
		"Cookie", mark + "-cookie", "Authorization", "Bearer " + mark + "-bearer", "User-Agent", mark + "-agent",
		"Referer", "https://x.example/?" + mark + "-referer", "X-Forwarded-For", mark + "-forwarded", "X-" + mark + "-Name", mark + "-value",
	}
	sequence := strings.Repeat("MKCANARYSEQ", 20)
	bodies := []string{
		"", mark, `"` + mark + `"`, `{"` + mark + `":1}`, `{"jobName":"` + mark + `/x","type":"` + mark + `","settings":{"` + mark + `":"` + sequence + `"}}`,
		`{"jobName":"j","type":"shell","settings":{"script":"` + sequence + `"` /* cut off */, `{"batchName":"b","type":"shell","settings":["` + mark + `"]}`,
		`{"size":"` + mark + `"}`, `{"jobName":"j","fileName":"` + mark + `"}`,
	}
	for _, op := range keyedRoutes(t) {
		for _, body := range bodies {
			for _, key := range []string{u.key, gone.key, u.key + mark, mark} {
				for _, query := range []string{"", "?" + mark + "-query=1&x-api-key=" + u.key} {
					r, err := http.NewRequestWithContext(t.Context(), op.Method, s.base+op.Path+query, strings.NewReader(body))
					must.OK(t, err)
					r.Header.Set("x-api-key", key)
					r.Header.Set("Content-Type", "application/json")
					for i := 0; i < len(headers); i += 2 {
						r.Header.Set(headers[i], headers[i+1])
					}
					response, err := http.DefaultTransport.RoundTrip(r)
					must.OK(t, err)
					if response.Header.Get("Content-Type") != "text/event-stream" { // event streams do not end
						_, err = io.Copy(io.Discard, response.Body)
						must.OK(t, err)
					}
					response.Body.Close()
				}
			}
		}
	}
	g := u.grant("a.txt")
	u.do("PUT", g.UploadURL, strings.NewReader(sequence)).want(200)
	u.do("PUT", g.UploadURL+mark, strings.NewReader(sequence)).want(403)
	u.do("GET", g.DownloadURL, nil).want(200)
	u.do("GET", strings.Replace(g.DownloadURL, "token=", "token="+mark, 1), nil).want(403)
	u.do("GET", "/jobs/"+u.key, nil).want(404)      // a key in place of a job name
	u.do("GET", "/jobs/"+tokenOf(g), nil).want(404) // a token in place of a job name
	u.do("POST", "/jobs/"+u.key+"/cancel", nil).want(404)
	u.do("GET", "/jobs", nil, "Cookie", strings.Repeat(mark, 20_000)).want(422) // exceeds the limit
	u.submit("j", "shell", script("echo "+sequence+"; exit 3"))
	u.finished("j")
	s.ok("key", "delete", strings.Split(gone.key, "_")[1])
	s.stop()

	audit, err := os.ReadFile(filepath.Join(s.data(), "audit.log"))
	must.OK(t, err)
	logs := map[string]string{"the service's log": s.log.String(), "the audit log": string(audit)}
	secrets := []string{
		mark, "Canary", "canary", "eyJ", "token=", strings.Split(u.key, "_")[2], strings.Split(gone.key, "_")[2], strings.Split(u.key, "_")[3],
	}
	for name, text := range logs {
		if strings.Count(text, "\n") < 20 {
			t.Errorf("%s is too short to prove anything: %s", name, text)
		}
		for _, secret := range secrets {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("%s contains %q: …%s…", name, secret, text[max(0, i-200):min(len(text), i+100)])
			}
		}
	}
}

func tokenOf(g grant) string {
	_, token, _ := strings.Cut(g.DownloadURL, "?token=")
	return token
}
