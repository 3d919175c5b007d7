package host

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"molrun/app/base/durable"
	"molrun/app/server/config"
)

const (
	lifetime    = 2 * 365 * 24 * time.Hour
	renewBefore = 30 * 24 * time.Hour
)

// hostNames returns the names and addresses by which clients might reach the service: the
// configured ones, the machine's, and localhost.
func hostNames(c config.Config) []string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	if host, err := os.Hostname(); err == nil {
		names = append(names, host)
	}
	if host, _, err := net.SplitHostPort(c.Listen); err == nil {
		names = append(names, host)
	}
	if u, err := url.Parse(c.PublicURL); err == nil {
		names = append(names, u.Hostname())
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(n string) bool { return n == "" || net.ParseIP(n).IsUnspecified() })
}

// EnsureSelfSigned creates a certificate for these names, unless there is one that has
// all of them and will remain valid for a while.
func EnsureSelfSigned(cert, key string, names []string, now time.Time) error {
	if validFor(cert, key, names, now) {
		return nil
	}
	if err := durable.MkdirAll(filepath.Dir(cert), 0o700); err != nil {
		return err
	}
	certPEM, keyPEM, err := selfSign(names, now)
	if err != nil {
		return err
	}
	// The key is written first, so that a certificate always has its key.
	return errors.Join(replace(key, keyPEM), replace(cert, certPEM))
}

func validFor(cert, key string, names []string, now time.Time) bool {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil || pair.Leaf.NotAfter.Before(now.Add(renewBefore)) {
		return false
	}
	return !slices.ContainsFunc(names, func(n string) bool { return pair.Leaf.VerifyHostname(n) != nil })
}

func selfSign(names []string, now time.Time) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "molrun"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(lifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return certPEM, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), nil
}

func replace(path string, data []byte) error {
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(durable.Replace(dir, filepath.Base(path), data), dir.Close())
}
