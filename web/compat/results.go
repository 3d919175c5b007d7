package compat

import (
	"crypto/rand"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"molrun/app/client"
	"molrun/app/job/apikey"
	"molrun/web/edge"
)

// logFile is the clients' name for the log in a result, and logName is ours.
const (
	logFile = "output.log"
	logName = "log.txt"
)

// result handles POST result. The response is just the link; for a failed job, it leads
// to the log.
func (c *call) result() (any, error) {
	body, err := c.body()
	if err != nil {
		return nil, err
	}
	job, file := c.member(body, "jobName"), c.member(body, "fileName", "path", "file", "filePath")
	if job == "" {
		return nil, rejectf("send jobName, the name of a job")
	}
	if file == logFile {
		j, err := c.api.Job(c.ctx(), job)
		if err != nil {
			return nil, err
		}
		if j.Status == "FAILED" {
			return c.logLink(j)
		}
		file = logName
	}
	ask := map[string]any{"jobName": job}
	if file != "" {
		ask["fileName"] = file
	}
	a, err := c.api.Post(c.ctx(), ask, "result")
	if err != nil {
		return nil, err
	}
	made, err := client.Decode[client.Result](a)
	if err != nil {
		return nil, err
	}
	return made.DownloadURL, nil
}

// logs handles GET catalog/jobs/{job}/logs with the last lines.
func (c *call) logs() (any, error) {
	lines := 500
	if text := c.r.URL.Query().Get("maxLines"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, rejectf("maxLines must be a number from 1")
		}
		lines = n
	}
	job := c.r.PathValue("job")
	_, size, err := c.readLog(job, 0, 0)
	if err != nil {
		return nil, err
	}
	log, _, err := c.readLog(job, max(0, size-maxLog), maxLog)
	if err != nil {
		return nil, err
	}
	if log == "" {
		return map[string]any{"log": "", "hint": job + " has printed nothing yet."}, nil
	}
	all := strings.SplitAfter(log, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return map[string]any{"log": strings.Join(all[max(0, len(all)-lines):], "")}, nil
}

func (c *call) readLog(job string, offset, limit int64) (text string, size int64, err error) {
	part, size, err := c.api.Log(c.ctx(), job, 0, offset, limit)
	if err != nil {
		return "", 0, err
	}
	defer part.Close() // read-only
	content, err := io.ReadAll(part)
	return strings.ToValidUTF8(string(content), "\uFFFD"), size, err
}

// maxLog is the number of bytes read from the end of a log.
const maxLog = 1 << 20

// logLinks are links to the logs of failed jobs, which the API shows only to key holders.
// They are kept in memory until they expire or the service restarts.
type logLinks struct {
	mu   sync.Mutex
	now  func() time.Time
	made map[string]logLink
}

type logLink struct {
	key, job string
	id       string // job ID: another job can take the name
	until    time.Time
}

const (
	linkLife = time.Hour
	maxLinks = 10_000
)

func newLogLinks(now func() time.Time) *logLinks {
	return &logLinks{now: now, made: map[string]logLink{}}
}

// addLink returns the token of a new link. If there are too many links, it removes
// expired links first, and then arbitrary ones.
func (l *logLinks) addLink(key string, job *client.Job) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for token, link := range l.made {
		if len(l.made) < maxLinks {
			break
		}
		if link.until.Before(now) {
			delete(l.made, token)
		}
	}
	for token := range l.made {
		if len(l.made) < maxLinks {
			break
		}
		delete(l.made, token)
	}
	token := rand.Text()
	l.made[token] = logLink{key, job.Name, job.ID, now.Add(linkLife)}
	return token
}

// revoke removes the links created with a key, or all links if id is "".
func (l *logLinks) revoke(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.made, func(_ string, link logLink) bool {
		of, _, _ := apikey.Split(link.key)
		return id == "" || of == id
	})
}

func (l *logLinks) findLink(token string) (logLink, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	link, ok := l.made[token]
	return link, ok && l.now().Before(link.until)
}

// logLink returns a link to the log of a job, with the same base URL as the API's own
// links.
func (c *call) logLink(job *client.Job) (any, error) {
	base, err := c.options.Base(c.r)
	if err != nil {
		return nil, err
	}
	return strings.TrimSuffix(base, "/") + Path + "log/" + c.mount.logs.addLink(c.r.Header.Get("x-api-key"), job), nil
}

// getLog handles a link to a log.
func (m *mount) getLog(w http.ResponseWriter, r *http.Request) {
	c := &call{mount: m, w: w, r: r}
	link, ok := m.logs.findLink(r.PathValue("token"))
	if !ok {
		c.fail(errLogLinkEnded)
		return
	}
	in := edge.InProcessRequest(r, http.MethodGet, "/jobs/"+url.PathEscape(link.job)+"/logs", nil)
	in.Header.Set("x-api-key", link.key)
	job, err := edge.InProcessClient(m.api, in).Job(r.Context(), link.job)
	if err == nil && job.ID != link.id {
		err = errLogLinkEnded
	}
	if err != nil {
		c.fail(err)
		return
	}
	m.api.ServeHTTP(w, in)
}

var errLogLinkEnded = &client.Error{Status: http.StatusForbidden, Code: "LINK_EXPIRED", Message: "This link has expired; request a new one."}
