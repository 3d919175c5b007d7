package certificate

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestSelfSignedCertificateIsRenewed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls", "cert.pem"), filepath.Join(dir, "tls", "key.pem")
	now := time.Now()
	ensure := func(names []string, at time.Time) string {
		t.Helper()
		must(t, EnsureSelfSigned(cert, key, names, at))
		text, err := os.ReadFile(cert)
		must(t, err)
		return string(text)
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
	must(t, os.Remove(key))
	ensure([]string{"b.example"}, now)
	if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
		t.Error(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
