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

	"molrun/app/test/must"
)

// frontEnd is a web server in front of the service, configured by an example in
// web/deploy.
type frontEnd struct {
	program, example string
	config           string // template: %[1]s directory, %[2]s address, %[3]s example
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

// start starts the web server in front of a service. instead has pairs of strings in the
// example and their replacements.
func (f frontEnd) start(t *testing.T, s *instance, listen string, instead ...string) {
	t.Helper()
	program, err := exec.LookPath(f.program)
	if err != nil {
		program = "/usr/sbin/" + f.program
	}
	if _, err := os.Stat(program); err != nil {
		must.Skip(t, "%s is not installed", f.program)
	}
	dir := t.TempDir()
	text := must.Read(t, filepath.Join(root, "web", "deploy", f.example))
	example := strings.ReplaceAll(text, "127.0.0.1:8080", strings.TrimPrefix(s.base, "http://"))
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
		_ = proxy.Process.Signal(os.Interrupt) // also stops Apache's child processes
		_ = proxy.Wait()                       // returns an error because of the signal
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

// behind starts a service configured to run behind a proxy, with its public address.
func behind(t *testing.T, listen string) (s *instance, key string) {
	t.Helper()
	s = startServer(t, serverOptions{config: fmt.Sprintf("public_url = \"http://%s/molrun\"\n[proxy]\ntrusted = \"127.0.0.1\"\n", listen)})
	return s, s.user("lab", "ann@lab.example").key
}

// examine runs the commands from web/docs/proxy.md, which send a small file, against an
// address.
func examine(t *testing.T, base, key string) (string, error) {
	t.Helper()
	must.Installed(t, "curl")
	c := exec.Command("sh", "-c", readme(t, "run: proxy"))
	c.Dir, c.Env = t.TempDir(), append(os.Environ(), "BASE="+base, "KEY="+key, "SIZE=5000000")
	out, err := c.CombinedOutput()
	return string(out), err
}

// TestExamplesOfProxiesLetEverythingThrough runs the documented check through each web
// server that has an example in web/deploy, and without a proxy.
func TestExamplesOfProxiesLetEverythingThrough(t *testing.T) {
	t.Parallel()
	passes := func(t *testing.T, base, key string) {
		t.Helper()
		if out, err := examine(t, base, key); err != nil || !strings.Contains(out, "\nretry: ") {
			t.Errorf("%v:\n%s", err, out)
		}
	}
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		u := startServer(t, serverOptions{}).user("lab", "ann@lab.example")
		passes(t, u.base, u.key)
	})
	for name, f := range frontEnds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listen := freeAddress(t)
			s, key := behind(t, listen)
			f.start(t, s, listen)
			passes(t, "http://"+listen+"/molrun", key)
		})
	}
}

// TestCheckOfAProxyFailsForSmallBodies breaks one setting of the example.
func TestCheckOfAProxyFailsForSmallBodies(t *testing.T) {
	t.Parallel()
	listen := freeAddress(t)
	s, key := behind(t, listen)
	frontEnds["nginx"].start(t, s, listen, "client_max_body_size 0", "client_max_body_size 1m")
	if out, err := examine(t, "http://"+listen+"/molrun", key); err == nil || !strings.Contains(out, "413") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// TestPageOfProxiesHasTheExamples compares web/docs/proxy.md with the files in
// web/deploy.
func TestPageOfProxiesHasTheExamples(t *testing.T) {
	t.Parallel()
	page := must.Read(t, filepath.Join(root, "web", "docs", "proxy.md"))
	for file, language := range map[string]string{"nginx.conf": "nginx", "apache.conf": "apache", "Caddyfile": "caddy"} {
		_, block, _ := strings.Cut(page, "\n```"+language+"\n")
		block, _, _ = strings.Cut(block, "```")
		if block == "" || !strings.HasSuffix(must.Read(t, filepath.Join(root, "web", "deploy", file)), "\n"+block) {
			t.Errorf("the page shows something else than %s", file)
		}
	}
}
