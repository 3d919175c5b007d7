package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app/cli/doctor"
	"molrun/app/cli/through"
	"molrun/app/test/must"
	"molrun/app/test/need"
)

// frontEnd is a web server in front of the service, with the example in web/deploy.
type frontEnd struct {
	program, example string
	config           string // %[1]s folder, %[2]s address, %[3]s example
	command          func(file, dir string) []string
}

var frontEnds = map[string]frontEnd{
	"nginx": {
		program: "nginx", example: "nginx.conf",
		config: `daemon off; master_process off; worker_processes 1; pid %[1]s/pid; error_log stderr;
events { worker_connections 256; }
http {
  access_log off;
  client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  server {
    listen %[2]s;
    %[3]s
  }
}
`,
		command: func(file, dir string) []string { return []string{"-p", dir, "-e", "stderr", "-c", file} },
	},
	"Apache": {
		program: "apache2", example: "apache.conf",
		config: `ServerRoot %[1]s
ServerName localhost
PidFile %[1]s/pid
Mutex file:%[1]s
DefaultRuntimeDir %[1]s
ErrorLog /dev/stderr
Listen %[2]s
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
LoadModule headers_module /usr/lib/apache2/modules/mod_headers.so
LoadModule reqtimeout_module /usr/lib/apache2/modules/mod_reqtimeout.so
LoadModule buffer_module /usr/lib/apache2/modules/mod_buffer.so
%[3]s
`,
		command: func(file, _ string) []string { return []string{"-D", "FOREGROUND", "-f", file} },
	},
	"Caddy": {
		program: "caddy", example: "Caddyfile",
		config:  "{\n\tadmin off\n\tauto_https off\n}\nhttp://%[2]s {\n\tbind 127.0.0.1\n%[3]s\n}\n",
		command: func(file, _ string) []string { return []string{"run", "--adapter", "caddyfile", "--config", file} },
	},
}

// start starts the web server before a service, with its example changed as told.
func (f frontEnd) start(t *testing.T, s *instance, listen string, instead ...string) {
	t.Helper()
	program, err := exec.LookPath(f.program)
	if err != nil {
		program = "/usr/sbin/" + f.program
	}
	if _, err := os.Stat(program); err != nil {
		need.Skip(t, "%s is not installed", f.program)
	}
	dir := t.TempDir()
	text, err := os.ReadFile(filepath.Join(root, "web", "deploy", f.example))
	must.OK(t, err)
	example := strings.ReplaceAll(string(text), "127.0.0.1:8080", strings.TrimPrefix(s.base, "http://"))
	for i := 0; i < len(instead); i += 2 {
		changed := strings.Replace(example, instead[i], instead[i+1], 1)
		if changed == example {
			t.Fatalf("%s has no %q to change", f.example, instead[i])
		}
		example = changed
	}
	file := filepath.Join(dir, "config")
	must.OK(t, os.WriteFile(file, fmt.Appendf(nil, f.config, dir, listen, example), 0o600))
	proxy := exec.Command(program, f.command(file, dir)...)
	proxy.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	var log bytes.Buffer
	proxy.Stdout, proxy.Stderr = &log, &log
	must.OK(t, proxy.Start())
	t.Cleanup(func() {
		_ = proxy.Process.Signal(os.Interrupt) // Apache's children end with it
		_ = proxy.Wait()                       // it was ended
		if t.Failed() {
			t.Logf("%s says:\n%s", f.program, log.String())
		}
	})
	s.eventually(f.program+" answers", func() bool {
		response, err := http.Get("http://" + listen + "/molrun/healthz")
		if err != nil {
			return false
		}
		response.Body.Close()
		return true
	})
}

// behind starts a service that knows its address behind a proxy.
func behind(t *testing.T, listen string) (s *instance, key string) {
	t.Helper()
	s = startServer(t, serverOptions{config: fmt.Sprintf("public_url = \"http://%s/molrun\"\n[proxy]\ntrusted = \"127.0.0.1\"\n", listen)})
	return s, s.user("lab", "ann@lab.example").key
}

func problems(findings []doctor.Finding) (texts []string) {
	for _, f := range findings {
		if f.Result != doctor.OK {
			texts = append(texts, f.Check+": "+f.Text)
		}
	}
	return texts
}

// TestExamplesOfProxiesLetEverythingThrough has doctor look through each web server that
// web/deploy has an example for, with the largest files and the longest requests.
func TestExamplesOfProxiesLetEverythingThrough(t *testing.T) {
	t.Parallel()
	for name, f := range frontEnds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listen := freeAddress(t)
			s, _ := behind(t, listen)
			f.start(t, s, listen)
			out, errs, code := s.run("doctor", "--through", "http://"+listen+"/molrun/", "--data", s.data())
			if code != 0 || strings.Contains(out, "warning") {
				t.Errorf("exit code %d: %s%s", code, out, errs)
			}
			for _, text := range []string{"answers through " + name, "200000000 bytes go up and come down", "a broken upload have reached the service", "events arrive as they happen", "a request can wait for 1m"} {
				if !strings.Contains(out, text) {
					t.Errorf("no %q in:\n%s", text, out)
				}
			}
			if left := s.ok("key", "list"); strings.Contains(left, "doctor@molrun.invalid") {
				t.Errorf("the key is left: %s", left)
			}
		})
	}
}

// TestDoctorNamesTheSettingOfTheProxy spoils the examples, one setting at a time.
func TestDoctorNamesTheSettingOfTheProxy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		proxy, name string
		instead     []string
		check, says string
	}{
		{"nginx", "small bodies", []string{"client_max_body_size 0", "client_max_body_size 1m"}, "through: 2 MB", "client_max_body_size 0"},
		{"nginx", "requests kept", []string{"proxy_request_buffering off", "proxy_request_buffering on"}, "through: interrupted upload", "proxy_request_buffering off"},
		{"nginx", "answers kept", []string{"proxy_buffering off;", "proxy_buffering on; proxy_ignore_headers X-Accel-Buffering; gzip on; gzip_proxied any; gzip_min_length 0; gzip_types *;"}, "through: events", "proxy_buffering off"},
		{"nginx", "little patience", []string{"proxy_read_timeout 120s", "proxy_read_timeout 3s"}, "through: long requests", "proxy_read_timeout"},
		{"nginx", "no ranges", []string{"proxy_set_header Connection", "proxy_set_header Range \"\"; proxy_set_header Connection"}, "through: 2 MB", "proxy_set_header Range"},
		{"nginx", "small headers", []string{"location /molrun/ {", "large_client_header_buffers 4 2k;\nlocation /molrun/ {"}, "through: headers", "large_client_header_buffers"},
		{"nginx", "another path", []string{"/;        # the slash", ";        # the slash"}, "through: reach", "proxy_pass"},
		{"Apache", "requests kept", []string{"<Location /molrun/>", "<Location /molrun/>\nSetInputFilter BUFFER\nBufferSize 8000000"}, "through: interrupted upload", "SetInputFilter BUFFER"},
		{"Apache", "little patience", []string{"timeout=120", "timeout=3"}, "through: long requests", "ProxyTimeout 120"},
		{"Apache", "no ranges", []string{"ProxyPreserveHost On", "ProxyPreserveHost On\nRequestHeader unset Range"}, "through: 2 MB", "RequestHeader unset Range"},
		{"Apache", "small headers", []string{"ProxyPreserveHost On", "ProxyPreserveHost On\nLimitRequestFieldSize 2000"}, "through: headers", "LimitRequestFieldSize"},
		{"Apache", "another path", []string{"8080/ nocanon", "8080/other/ nocanon"}, "through: reach", "ProxyPass"},
		{"Caddy", "small bodies", []string{"reverse_proxy ", "request_body {\nmax_size 1MB\n}\nreverse_proxy "}, "through: 2 MB", "max_size of request_body"},
		{"Caddy", "requests kept", []string{"flush_interval -1", "buffer_requests"}, "through: interrupted upload", "request_buffers"},
		{"Caddy", "answers kept", []string{"flush_interval -1", "buffer_responses"}, "through: events", "flush_interval -1"},
		{"Caddy", "little patience", []string{"flush_interval -1", "flush_interval -1\ntransport http {\nresponse_header_timeout 3s\n}"}, "through: long requests", "response_header_timeout"},
		{"Caddy", "no ranges", []string{"flush_interval -1", "flush_interval -1\nheader_up -Range"}, "through: 2 MB", "header_up -Range"},
		{"Caddy", "another path", []string{"handle_path", "handle"}, "through: reach", "handle_path"},
	} {
		t.Run(tt.proxy+" "+tt.name, func(t *testing.T) {
			t.Parallel()
			listen := freeAddress(t)
			s, key := behind(t, listen)
			instead := tt.instead
			for i, text := range instead { // the address of the example is replaced first
				instead[i] = strings.ReplaceAll(text, "8080/", s.base[strings.LastIndex(s.base, ":")+1:]+"/")
			}
			frontEnds[tt.proxy].start(t, s, listen, instead...)
			findings := problems(through.Examine(t.Context(), through.Options{
				URL: "http://" + listen + "/molrun", Key: key, Sizes: []int64{2e6}, Wait: 8 * time.Second,
			}))
			if len(findings) != 1 || !strings.HasPrefix(findings[0], tt.check+": ") || !strings.Contains(findings[0], tt.says) {
				t.Errorf("doctor says %q, want one finding of %q with %q", findings, tt.check, tt.says)
			}
		})
	}
}

// TestDoctorSeesLinksThatLeadElsewhere has a service that does not know its address.
func TestDoctorSeesLinksThatLeadElsewhere(t *testing.T) {
	t.Parallel()
	listen := freeAddress(t)
	s := startServer(t, serverOptions{})
	key := s.user("lab", "ann@lab.example").key
	frontEnds["nginx"].start(t, s, listen)
	findings := problems(through.Examine(t.Context(), through.Options{URL: "http://" + listen + "/molrun", Key: key, Sizes: []int64{2e6}, Wait: time.Second}))
	if len(findings) != 1 || !strings.HasPrefix(findings[0], "through: links: ") || !strings.Contains(findings[0], "public_url") {
		t.Errorf("doctor says %q", findings)
	}
	findings = problems(through.Examine(t.Context(), through.Options{URL: "http://" + listen + "/molrun", Key: "molrun_none"}))
	if len(findings) != 1 || !strings.Contains(findings[0], "the API key does not open the service") {
		t.Errorf("with a wrong key, doctor says %q", findings)
	}
	for _, url := range []string{"lab.example", "ftp://lab.example", "http://" + freeAddress(t)} {
		if findings := problems(through.Examine(t.Context(), through.Options{URL: url})); len(findings) != 1 || !strings.HasPrefix(findings[0], "through: reach: ") {
			t.Errorf("%s: doctor says %q", url, findings)
		}
	}
}
