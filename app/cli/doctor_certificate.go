package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// expiresSoon is when a certificate that nobody renews is worth a word.
const expiresSoon = 21 * 24 * time.Hour

func lookAtCertificate(_ context.Context, p *patient) []finding {
	t := p.config.TLS
	if !t.On() {
		return say(fine, "none is configured: the service speaks plain HTTP")
	}
	cert, key := t.Cert, t.Key
	if t.SelfSigned {
		cert, key = filepath.Join(p.data, "tls", "cert.pem"), filepath.Join(p.data, "tls", "key.pem")
		if _, err := os.Stat(cert); errors.Is(err, fs.ErrNotExist) {
			return say(doubtful, "there is none yet; molrun serve makes it")
		}
	}
	if err := private(key); err != nil {
		return say(wrong, "%s", message(err))
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return say(wrong, "%s and %s can't be used: %v; name a certificate in PEM and the key that belongs to it", cert, key, err)
	}
	return p.lookAtExpiry(cert, pair.Leaf)
}

func (p *patient) lookAtExpiry(cert string, leaf *x509.Certificate) []finding {
	until := leaf.NotAfter.Local().Format(time.DateTime)
	switch left := leaf.NotAfter.Sub(p.now); {
	case left <= 0:
		return say(wrong, "%s expired on %s; renew it", cert, until)
	case p.now.Before(leaf.NotBefore):
		return say(wrong, "%s is not valid before %s; look at the clock, or name another", cert, leaf.NotBefore.Local().Format(time.DateTime))
	case left < expiresSoon:
		return say(doubtful, "%s expires on %s; renew it", cert, until)
	}
	return say(fine, "%s is valid until %s", cert, until)
}
