package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app/server/host"
	"molrun/app/test/must"
)

// TestHealthWorksWithEveryConfigurationThatServes runs the command with only the
// service's configuration, as containers and monitoring do.
func TestHealthWorksWithEveryConfigurationThatServes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	must.OK(t, host.EnsureSelfSigned(cert, key, []string{"molrun.lab.example"}, time.Now()))
	site := fmt.Sprintf("[tls]\ncert = %q\nkey = %q\n", cert, key)
	for _, tt := range []struct{ name, config, listen, address string }{
		{"plain", "", "127.0.0.1:0", "http://127.0.0.1:"},
		{"everywhere", "", ":0", "http://[::]:"},
		{"self-signed", "[tls]\nself_signed = true\n", "127.0.0.1:0", "https://127.0.0.1:"},
		{"public URL with a path, behind TLS", "public_url = \"https://molrun.lab.example/molrun\"\n" + site, "0.0.0.0:0", "https://"},
		{"public URL and sign-in by a proxy", "public_url = \"https://molrun.lab.example/x/\"\n[sign_in]\nheader = \"X-User\"\nproxies = \"192.0.2.77\"\norganization = \"lab\"\n", "127.0.0.1:0", "http://127.0.0.1:"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, serverOptions{config: tt.config, flags: []string{"--listen", tt.listen}, env: []string{
				"HTTP_PROXY=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1",
			}})
			out, errs, code := s.run("health")
			if want := "healthy: " + tt.address; code != 0 || errs != "" || !strings.HasPrefix(out, want) || strings.Count(out, "\n") != 1 {
				t.Errorf("exit code %d: %q, %q; want a line %s…", code, out, errs, want)
			}
			if tt.name == "plain" { // one configuration is enough
				s.healthAfterStop()
			}
		})
	}
}

// healthAfterStop stops the service and checks the command's output.
func (s *instance) healthAfterStop() {
	s.t.Helper()
	s.stop()
	out, errs, code := s.run("health")
	if want := "molrun: no service is running on the data directory " + s.data() + "\n"; code != exitFailed || out != "" || errs != want {
		s.t.Errorf("of a stopped service: exit code %d: %q, %q", code, out, errs)
	}
	s.fails(exitFailed, "run this command as the service's user, with its --data", "health", "--data", filepath.Join(s.dir, "none"))
}

// TestHealthReachesAServiceByItsOwnAddress has a service on a network address of this
// machine and a proxy in the environment, which must not be used.
func TestHealthReachesAServiceByItsOwnAddress(t *testing.T) {
	t.Parallel()
	addresses, err := net.InterfaceAddrs()
	must.OK(t, err)
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() {
			s := startServer(t, serverOptions{flags: []string{"--listen", net.JoinHostPort(ip.IP.String(), "0")}, env: []string{"HTTP_PROXY=http://127.0.0.1:1"}})
			if out, errs, code := s.run("health"); code != 0 || !strings.Contains(out, ip.IP.String()) {
				t.Errorf("exit code %d: %s%s", code, out, errs)
			}
			return
		}
	}
	t.Skip("this machine has no address but its own")
}

// answering starts an HTTP server with the given handler and returns its host:port.
func answering(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	s := http.Server{Handler: answer}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { must.OK(t, s.Close()) })
	return l.Addr().String()
}

func TestHealthSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.toml")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	ok := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			fmt.Fprint(w, `{"status":"ok"}`)
		}
	})
	_, port, err := net.SplitHostPort(ok)
	must.OK(t, err)
	for _, host := range []string{"127.0.0.1", "0.0.0.0", "", "[::]", "localhost"} {
		if out, errs, code := outside(t, "health", "--config", file, "--listen", host+":"+port); code != 0 || errs != "" {
			t.Errorf("of %q: exit code %d: %s%s", host, code, out, errs)
		}
	}
	sick := answering(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	other := answering(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "Welcome to nginx!") })
	stuck := answering(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	for _, tt := range []struct {
		args, errs string
		code       int
	}{
		{"--listen " + sick, "molrun: the service responded 503 Service Unavailable\n", exitFailed},
		{"--listen " + other, "molrun: the server at http://" + other + " is not a molrun service\n", exitFailed},
		{"--timeout 200ms --listen " + stuck, "context deadline exceeded\n", exitFailed},
		{"--listen 127.0.0.1:1", "connection refused\n", exitFailed},
		{"--timeout 0s", "--timeout: use a time above 0, such as 5s\n", exitUsage},
		{"--listen 127.0.0.1", "listen: ", exitInvalid},
	} {
		out, errs, code := outside(t, append([]string{"health", "--config", file}, strings.Fields(tt.args)...)...)
		if code != tt.code || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, tt.errs) {
			t.Errorf("%s: exit code %d: %q, %q; want %d and %q", tt.args, code, out, errs, tt.code, tt.errs)
		}
	}
}
