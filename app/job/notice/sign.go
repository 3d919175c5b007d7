package notice

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

// secretPrefix begins a secret, by the specification of Standard Webhooks.
const secretPrefix = "whsec_"

// NewSecret makes the secret of a receiver.
func NewSecret() string {
	key := make([]byte, 32)
	rand.Read(key) // never fails (crypto/rand)
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// Sign returns the header webhook-signature: one signature for each secret, so that a
// receiver that knows any of them can check the message.
func Sign(message string, at time.Time, body []byte, secrets ...string) (string, error) {
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
		if err != nil {
			return "", fmt.Errorf("read the secret of a webhook: %w", err)
		}
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%d.%s", message, at.Unix(), body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " "), nil
}
