package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"time"

	"molrun/app/base/fault"
	"molrun/app/server/host"
)

// expiresSoon is the remaining lifetime below which a certificate gets a warning.
const expiresSoon = 21 * 24 * time.Hour

func checkCertificate(_ context.Context, in *installation) []Finding {
	t := in.config.TLS
	if !t.On() {
		return finding(OK, "none is configured: the service uses HTTP without encryption")
	}
	cert, key := host.CertificateFiles(in.config)
	if t.SelfSigned {
		if _, err := os.Stat(cert); errors.Is(err, fs.ErrNotExist) {
			return finding(Warning, "there is none yet; molrun serve creates it")
		}
	}
	if err := host.CheckPrivateKey(key); err != nil {
		return finding(Problem, "%s", fault.Text(err))
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return finding(Problem, "%s and %s can't be used: %v; configure a certificate in PEM format and its key", cert, key, err)
	}
	return checkExpiry(in.now, cert, pair.Leaf)
}

func checkExpiry(now time.Time, cert string, leaf *x509.Certificate) []Finding {
	until := leaf.NotAfter.Local().Format(time.DateTime)
	switch left := leaf.NotAfter.Sub(now); {
	case left <= 0:
		return finding(Problem, "%s expired on %s; renew it", cert, until)
	case now.Before(leaf.NotBefore):
		return finding(Problem, "%s is not valid before %s; check the clock, or configure another certificate", cert, leaf.NotBefore.Local().Format(time.DateTime))
	case left < expiresSoon:
		return finding(Warning, "%s expires on %s; renew it", cert, until)
	}
	return finding(OK, "%s is valid until %s", cert, until)
}
