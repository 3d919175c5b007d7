package cli

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

	"molrun/app/config"
	"molrun/app/fault"
)

// certificate is what the service shows to clients. It is read again when its
// files have changed; connections that are open stay as they are.
type certificate struct {
	cert, key string
	log       zerolog.Logger

	mu       sync.Mutex
	current  *tls.Certificate
	read     [2]fileState // of which it was read
	looked   time.Time
	complain bool // a fault was told, and not mended since
}

// fileState tells whether a file is the one that was read.
type fileState struct {
	size    int64
	changed time.Time
}

// lookEvery is how often, at most, the files are looked at.
const lookEvery = time.Second

// openCertificate reads the certificate of the configuration, or makes one in
// the data directory where it asks for that. It gives nil for plain HTTP.
func openCertificate(c config.Config, log zerolog.Logger) (*certificate, error) {
	if !c.TLS.On() {
		return nil, nil
	}
	own := &certificate{cert: c.TLS.Cert, key: c.TLS.Key, log: log}
	if c.TLS.SelfSigned {
		dir := filepath.Join(c.Data, "tls")
		own.cert, own.key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
		if err := ensureSelfSigned(own.cert, own.key, certificateNames(c), time.Now()); err != nil {
			return nil, fmt.Errorf("make a certificate: %w", err)
		}
	}
	if err := own.load(); err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	return own, nil
}

// load reads both files anew.
func (o *certificate) load() error {
	if err := private(o.key); err != nil {
		return err
	}
	read, err := o.states()
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return err
	}
	o.current, o.read = &pair, read
	return nil
}

func (o *certificate) states() (s [2]fileState, err error) {
	for i, name := range []string{o.cert, o.key} {
		info, err := os.Stat(name)
		if err != nil {
			return s, err
		}
		s[i] = fileState{info.Size(), info.ModTime()}
	}
	return s, nil
}

// private refuses a file that others may read.
func private(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return fault.Errorf(fault.Invalid, "%s may be read by others (mode %#o): run chmod 600 on it", name, perm)
	}
	return nil
}

// get gives the certificate for a new connection.
func (o *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Since(o.looked) > lookEvery {
		o.refresh()
	}
	return o.current, nil
}

// reload looks at the files now.
func (o *certificate) reload() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refresh()
}

// refresh reads the files if they have changed. One that can't be read leaves
// the certificate as it is: its two files are seldom replaced at once.
func (o *certificate) refresh() {
	o.looked = time.Now()
	read, err := o.states()
	if err == nil && read == o.read {
		o.complain = false
		return
	}
	if err == nil {
		err = o.load()
	}
	switch {
	case err == nil:
		o.complain = false
		o.log.Info().Str("fingerprint", o.fingerprint()).Msg("the certificate was read again")
	case !o.complain:
		o.complain = true
		o.log.Error().Err(err).Msg("the new certificate can't be used; the old one stays")
	}
}

// fingerprint is the SHA-256 of the certificate, as browsers show it.
func (o *certificate) fingerprint() string {
	sum := sha256.Sum256(o.current.Certificate[0])
	parts := make([]string, len(sum))
	for i, b := range sum {
		parts[i] = fmt.Sprintf("%02X", b)
	}
	return strings.Join(parts, ":")
}

// config gives how the server speaks TLS.
func (o *certificate) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: o.get}
}
