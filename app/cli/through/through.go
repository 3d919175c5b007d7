// Package through finds out whether a proxy in front of the service lets through what the
// service needs: large bodies, streams, ranges, long requests. It uses the service as a
// client does, and names the setting of the proxy that is at fault.
package through

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"molrun/app/cli/doctor"
)

// Options say what is asked, and as whom.
type Options struct {
	URL   string        // of the service, as users see it
	Key   string        // an API key that may submit
	Sizes []int64       // of the files that go up and down; none: 2, 30 and 200 MB
	Wait  time.Duration // the longest time without an answer; 0: 60 s, as long as a client may ask for
}

// timeout bounds one step, besides what it waits for on purpose.
const timeout = 2 * time.Minute

// prompt is how soon something has to arrive that is sent at once.
const prompt = 10 * time.Second

// probe is one examination.
type probe struct {
	ctx      context.Context
	options  Options
	base     string // without a slash at the end
	http     *http.Client
	proxy    proxy
	findings []doctor.Finding
	files    []string // IDs of the uploads
}

// Examine uses the service through its URL. It deletes the files and the job that it makes.
func Examine(ctx context.Context, o Options) []doctor.Finding {
	if len(o.Sizes) == 0 {
		o.Sizes = []int64{2e6, 30e6, 200e6}
	}
	if o.Wait == 0 {
		o.Wait = time.Minute
	}
	p := &probe{ctx: ctx, options: o, base: strings.TrimRight(o.URL, "/"), http: &http.Client{
		Transport:     &http.Transport{DisableCompression: true, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	defer p.http.CloseIdleConnections()
	if u, err := url.Parse(o.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		p.say(doctor.Problem, "reach", "%q is no address of a service; give one such as https://lab.example/molrun", o.URL)
		return p.findings
	}
	if !p.reach() {
		return p.findings
	}
	defer p.tidy()
	p.headers()
	if p.transfers() {
		p.streamedUpload()
	}
	p.waiting()
	return p.findings
}

// transfers sends files up and gets them back. What keeps one from it keeps larger ones, too.
func (p *probe) transfers() bool {
	for _, size := range p.options.Sizes {
		if !p.transfer(size) {
			return false
		}
	}
	return true
}

func (p *probe) say(r doctor.Result, check, format string, args ...any) {
	p.findings = append(p.findings, doctor.Finding{Check: "through: " + check, Result: r, Text: fmt.Sprintf(format, args...)})
}

// blame says what does not work, and which setting is to be looked at.
func (p *probe) blame(check string, s setting, format string, args ...any) {
	p.say(doctor.Problem, check, "%s; %s", fmt.Sprintf(format, args...), p.proxy.advice(s))
}

// answer is a response with its body.
type answer struct {
	*http.Response
	body []byte
}

// ours reports whether the service made the answer, not the proxy.
func (a *answer) ours() bool { return a.Header.Get("X-Request-Id") != "" }

func (a *answer) String() string {
	if a.ours() {
		return fmt.Sprintf("the service answers %s %.300s", a.Status, bytes.TrimSpace(a.body))
	}
	return "the proxy answers " + a.Status
}

// request makes a request to a path of the service, or to a link.
func (p *probe) request(ctx context.Context, method, target string, body io.Reader, headers ...string) (*http.Request, error) {
	if strings.HasPrefix(target, "/") {
		target = p.base + target
		headers = append(headers, "x-api-key", p.options.Key)
	}
	r, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r, nil
}

// ask sends a request and reads the answer.
func (p *probe) ask(method, target string, body io.Reader, headers ...string) (*answer, error) {
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	r, err := p.request(ctx, method, target, body, headers...)
	if err != nil {
		return nil, err
	}
	response, err := p.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return &answer{response, text}, err
}

// call asks for something that has to work, and decodes what the service says.
func (p *probe) call(method, path string, body string, into any) error {
	var reader io.Reader
	headers := []string{}
	if body != "" {
		reader, headers = strings.NewReader(body), append(headers, "Content-Type", "application/json")
	}
	a, err := p.ask(method, path, reader, headers...)
	if err != nil {
		return err
	}
	if a.StatusCode/100 != 2 {
		return errors.New(a.String())
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(a.body, into)
}

// reach finds the service and what is in front of it.
func (p *probe) reach() bool {
	a, err := p.ask(http.MethodGet, "/version", nil)
	if err != nil {
		p.say(doctor.Problem, "reach", "no answer at %s: %v", p.base, err)
		return false
	}
	p.proxy = proxyOf(a.Header)
	var version struct{ Version string }
	switch {
	case a.StatusCode == http.StatusOK && a.ours() && json.Unmarshal(a.body, &version) == nil && version.Version != "":
	case a.StatusCode == http.StatusBadGateway || a.StatusCode == http.StatusServiceUnavailable || a.StatusCode == http.StatusGatewayTimeout:
		p.blame("reach", upstream, "%s: it does not reach the service", a)
		return false
	default:
		p.blame("reach", upstream, "%s to GET %s/version, which is not what molrun would say", a, p.base)
		return false
	}
	if err := p.call(http.MethodGet, "/session", "", nil); err != nil {
		p.say(doctor.Problem, "reach", "the API key does not open the service: %v", err)
		return false
	}
	p.say(doctor.OK, "reach", "molrun %s answers through %s", version.Version, p.proxy)
	return true
}

// headerBytes is what URLs and headers may need: cookies of a site's sign-in, filters of a
// list. Every proxy allows 8 KiB unless it is told otherwise.
const headerBytes = 7000

// headers sends a long URL and a long header.
func (p *probe) headers() {
	long := strings.Repeat("a", headerBytes)
	a, err := p.ask(http.MethodGet, "/healthz", nil, "X-Molrun-Probe", long)
	if err != nil || a.StatusCode != http.StatusOK {
		p.blame("headers", headerSize, "a header of %d bytes does not get through: %s", headerBytes, failure(a, err))
		return
	}
	// What the service says to this does not matter.
	if a, err = p.ask(http.MethodGet, "/healthz?x="+long, nil); err != nil || !a.ours() {
		p.blame("headers", urlSize, "a URL of %d bytes does not get through: %s", headerBytes, failure(a, err))
		return
	}
	p.say(doctor.OK, "headers", "headers and URLs of %d bytes get through", headerBytes)
}

func failure(a *answer, err error) string {
	if err != nil {
		return err.Error()
	}
	return a.String()
}

// tidy deletes what the examination has left.
func (p *probe) tidy() {
	for _, id := range p.files {
		if err := p.call(http.MethodDelete, "/files/"+id, "", nil); err != nil {
			p.say(doctor.Warning, "tidy", "the uploaded file %s can't be deleted: %v", id, err)
		}
	}
}
