package host

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"molrun/app/server/config"
	"molrun/app/test/must"
)

func TestSelfSignedCertificateIsRenewed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls", "cert.pem"), filepath.Join(dir, "tls", "key.pem")
	now := time.Now()
	ensure := func(names []string, at time.Time) string {
		t.Helper()
		must.OK(t, EnsureSelfSigned(cert, key, names, at))
		text := must.Read(t, cert)
		return text
	}
	first := ensure([]string{"a.example", "127.0.0.1"}, now)
	if again := ensure([]string{"a.example"}, now.AddDate(1, 0, 0)); again != first {
		t.Error("it is renewed though it is good")
	}
	second := ensure([]string{"b.example"}, now)
	if second == first {
		t.Error("it is not renewed for another name")
	}
	if third := ensure([]string{"b.example"}, now.Add(lifetime-renewBefore+time.Hour)); third == second {
		t.Error("it is not renewed before its end")
	}
	must.OK(t, os.Remove(key))
	ensure([]string{"b.example"}, now)
	if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
		t.Error(err)
	}
}

// TestCertificateIsReadAgainWhenItsFilesChange removes the key for a while, then replaces
// both files.
func TestCertificateIsReadAgainWhenItsFilesChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conf := config.Default()
	conf.TLS.Cert, conf.TLS.Key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	must.OK(t, EnsureSelfSigned(conf.TLS.Cert, conf.TLS.Key, []string{"a.example"}, time.Now()))
	var log bytes.Buffer
	c, err := OpenCertificate(conf, zerolog.New(&log))
	must.OK(t, err)
	first := c.Fingerprint()
	c.Reload()
	if c.Fingerprint() != first || log.Len() > 0 {
		t.Errorf("unchanged files are read again: %s", &log)
	}

	aside := conf.TLS.Key + ".aside"
	must.OK(t, os.Rename(conf.TLS.Key, aside))
	for range 2 {
		c.Reload()
	}
	if c.Fingerprint() != first || strings.Count(log.String(), "keeping the old one") != 1 {
		t.Errorf("without the key, want the old certificate and one log line: %s", &log)
	}

	must.OK(t, os.Rename(aside, conf.TLS.Key))
	must.OK(t, EnsureSelfSigned(conf.TLS.Cert, conf.TLS.Key, []string{"a.longer.name.example"}, time.Now()))
	c.Reload()
	if c.Fingerprint() == first {
		t.Errorf("the new certificate is not read: %s", &log)
	}
}

func TestSelfSignedCertificateHasTheNamesOfTheMachine(t *testing.T) {
	t.Parallel()
	machine, err := os.Hostname()
	must.OK(t, err)
	conf := config.Default()
	for listen, own := range map[string][]string{"0.0.0.0:8443": nil, "10.0.0.7:8443": {"10.0.0.7"}} {
		conf.Listen, conf.PublicURL = listen, "https://sim.example:8443/x"
		want := append([]string{"localhost", "127.0.0.1", "::1", "sim.example", machine}, own...)
		slices.Sort(want)
		must.Equal(t, fmt.Sprintf("listening on %s: names", listen), hostNames(conf), slices.Compact(want))
	}
}
