package host

import (
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"molrun/app/base/fault"
	"molrun/app/server/config"
)

// Certificate is the certificate that the service presents to clients. It is reloaded
// when its files change; open connections keep the old one.
type Certificate struct {
	cert, key string
	log       zerolog.Logger

	mu       sync.Mutex
	current  *tls.Certificate
	read     [2]fileState // versions of the files that were read
	checked  time.Time    // last check of the files
	reported bool         // the current error has been logged
}

// fileState identifies the version of a file that was read.
type fileState struct {
	size    int64
	changed time.Time
}

// checkInterval is the minimum interval between checks of the files.
const checkInterval = time.Second

// OpenCertificate reads the configured certificate. If it is to be self-signed,
// OpenCertificate first creates it in the data directory. Without TLS, it returns nil.
func OpenCertificate(c config.Config, log zerolog.Logger) (*Certificate, error) {
	if !c.TLS.On() {
		return nil, nil
	}
	cert := &Certificate{log: log}
	cert.cert, cert.key = CertificateFiles(c)
	if c.TLS.SelfSigned {
		if err := EnsureSelfSigned(cert.cert, cert.key, hostNames(c), time.Now()); err != nil {
			return nil, fmt.Errorf("make a certificate: %w", err)
		}
	}
	if err := cert.loadFiles(); err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	return cert, nil
}

// CertificateFiles returns the paths of the certificate and its key.
func CertificateFiles(c config.Config) (cert, key string) {
	if c.TLS.SelfSigned {
		return filepath.Join(c.Data, "tls", "cert.pem"), filepath.Join(c.Data, "tls", "key.pem")
	}
	return c.TLS.Cert, c.TLS.Key
}

// CheckPrivateKey rejects a file that others can read.
func CheckPrivateKey(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return fault.Errorf(fault.Invalid, "%s is readable by others (mode %#o): run chmod 600 on it", name, perm)
	}
	return nil
}

// Config returns the TLS configuration of the server.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.certificateFor}
}

// Reload checks the files now.
func (c *Certificate) Reload() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh()
}

// Fingerprint returns the SHA-256 of the certificate, in the format of browsers.
func (c *Certificate) Fingerprint() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fingerprint(c.current)
}

func fingerprint(c *tls.Certificate) string {
	sum := sha256.Sum256(c.Certificate[0])
	parts := make([]string, len(sum))
	for i, b := range sum {
		parts[i] = fmt.Sprintf("%02X", b)
	}
	return strings.Join(parts, ":")
}

// loadFiles reads both files again.
func (c *Certificate) loadFiles() error {
	if err := CheckPrivateKey(c.key); err != nil {
		return err
	}
	read, err := c.states()
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return err
	}
	c.current, c.read = &pair, read
	return nil
}

func (c *Certificate) states() (s [2]fileState, err error) {
	for i, name := range []string{c.cert, c.key} {
		info, err := os.Stat(name)
		if err != nil {
			return s, err
		}
		s[i] = fileState{info.Size(), info.ModTime()}
	}
	return s, nil
}

// certificateFor returns the certificate for a new connection.
func (c *Certificate) certificateFor(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.checked) > checkInterval {
		c.refresh()
	}
	return c.current, nil
}

// refresh reads the files if they have changed. If that fails, it keeps the certificate,
// because the two files are seldom replaced at the same moment.
func (c *Certificate) refresh() {
	c.checked = time.Now()
	read, err := c.states()
	if err == nil && read == c.read {
		c.reported = false
		return
	}
	if err == nil {
		err = c.loadFiles()
	}
	switch {
	case err == nil:
		c.reported = false
		c.log.Info().Str("fingerprint", fingerprint(c.current)).Msg("reloaded the certificate")
	case !c.reported:
		c.reported = true
		c.log.Error().Err(err).Msg("could not use the new certificate; keeping the old one")
	}
}
