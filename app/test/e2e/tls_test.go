package e2e

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"molrun/app/server/host"
	"molrun/app/test/must"
)

// secure makes the server's client use TLS and trust the certificate in file.
func (s *instance) secure(file string) *tls.Config {
	s.t.Helper()
	text, err := os.ReadFile(file)
	must.OK(s.t, err)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		s.t.Fatalf("no certificate in %s", file)
	}
	config := &tls.Config{RootCAs: pool}
	s.base = strings.Replace(s.base, "http://", "https://", 1)
	s.http = &http.Client{
		Transport: specChecker().Transport(s.t, &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}), Timeout: patience,
	}
	return config
}

// logged returns a member of the first log entry with this message.
func (s *instance) logged(message, member string) string {
	for line := range strings.Lines(s.log.String()) {
		var fields map[string]any
		if json.Unmarshal([]byte(line), &fields) == nil && fields["message"] == message {
			return fmt.Sprint(fields[member])
		}
	}
	return ""
}

// fingerprintOf returns the fingerprint of the first certificate in file.
func fingerprintOf(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	must.OK(t, err)
	block, _ := pem.Decode(text)
	sum := sha256.Sum256(block.Bytes)
	return strings.ReplaceAll(fmt.Sprintf("% X", sum), " ", ":")
}

func TestServiceCreatesASelfSignedCertificate(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{config: "public_url = \"https://molrun.lab.example/x\"\n[tls]\nself_signed = true\n"})
	file := filepath.Join(s.data(), "tls", "cert.pem")
	if got, want := s.logged("started", "fingerprint"), fingerprintOf(t, file); got != want {
		t.Errorf("fingerprint %s in the log, %s in the file", got, want)
	}
	config := s.secure(file)
	u := s.user("lab", "ann@lab.example")
	u.do("GET", "/jobs", nil).want(200)
	address := strings.TrimPrefix(s.base, "https://")
	old := config.Clone()
	old.MaxVersion = tls.VersionTLS11
	old.MinVersion = tls.VersionTLS10
	if c, err := tls.Dial("tcp", address, old); err == nil {
		c.Close()
		t.Error("TLS 1.1 is accepted")
	}
	for _, name := range []string{"molrun.lab.example", "localhost", "127.0.0.1"} {
		named := config.Clone()
		named.ServerName = name
		c, err := tls.Dial("tcp", address, named)
		if err != nil {
			t.Errorf("as %s: %v", name, err)
			continue
		}
		c.Close()
	}
	plain, err := http.Get("http://" + address + "/healthz")
	must.OK(t, err)
	if text := body(t, plain); plain.StatusCode != 400 || !strings.Contains(text, `"BAD_REQUEST"`) || !strings.Contains(text, "https://") {
		t.Errorf("plain HTTP: %d %s", plain.StatusCode, text)
	}
	before := fingerprintOf(t, file)
	s.stop()
	s.start()
	if after := fingerprintOf(t, file); after != before {
		t.Error("a restart replaced the certificate")
	}
}

func TestLargeFilesAreTransferredOverHTTP2(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{config: "[tls]\nself_signed = true\n"})
	s.secure(filepath.Join(s.data(), "tls", "cert.pem"))
	u := s.user("lab", "ann@lab.example")
	g := u.grant("a.txt")
	if !strings.HasPrefix(g.UploadURL, s.base+"/blobs/") {
		t.Errorf("uploadUrl %s does not begin with %s", g.UploadURL, s.base)
	}
	text := strings.Repeat("0123456789abcdef", 1<<20) // larger than any buffer
	u.do("PUT", g.UploadURL, strings.NewReader(text)).want(200)
	u.do("POST", "/upload/"+g.FileID+"/complete", "{}").want(200)
	r, err := http.NewRequestWithContext(t.Context(), "GET", g.DownloadURL, nil)
	must.OK(t, err)
	response, err := s.http.Do(r)
	must.OK(t, err)
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	must.OK(t, err)
	if response.ProtoMajor != 2 || string(got) != text {
		t.Errorf("HTTP/%d: %d bytes, want %d over HTTP/2", response.ProtoMajor, len(got), len(text))
	}
	part := u.do("GET", g.DownloadURL, nil, "Range", "bytes=16-31").want(206)
	if string(part.body) != "0123456789abcdef" {
		t.Errorf("range: %q", part.body)
	}
}

func TestCertificateIsReloadedWithoutDroppingConnections(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	renew := func(name string) { // a new name requires a new certificate
		t.Helper()
		must.OK(t, host.EnsureSelfSigned(cert, key, []string{"127.0.0.1", name}, time.Now()))
	}
	renew("first.example")
	s := startServer(t, serverOptions{config: fmt.Sprintf("[tls]\ncert = %q\nkey = %q\n", cert, key)})
	s.secure(cert)
	old := s.http
	anonymous := user{s, ""}
	anonymous.do("GET", "/healthz", nil).want(200)
	first := fingerprintOf(t, cert)
	renew("second.example")
	must.OK(t, s.process.Process.Signal(syscall.SIGHUP))
	s.eventually("the certificate is reloaded", func() bool {
		return s.logged("reloaded the certificate", "fingerprint") == fingerprintOf(t, cert)
	})
	anonymous.do("GET", "/healthz", nil).want(200) // on the old connection, because the old client trusts only the old certificate
	if first == fingerprintOf(t, cert) {
		t.Fatal("the certificate did not change")
	}
	s.secure(cert)
	anonymous.do("GET", "/healthz", nil).want(200) // on a new connection, with the new certificate
	s.http = old
	must.OK(t, os.WriteFile(cert, []byte("damaged"), 0o600))
	must.OK(t, s.process.Process.Signal(syscall.SIGHUP))
	s.eventually("the damaged certificate is refused", func() bool {
		return s.logged("could not use the new certificate; keeping the old one", "level") == "error"
	})
	anonymous.do("GET", "/healthz", nil).want(200)
}
