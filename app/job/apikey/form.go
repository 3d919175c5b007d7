package apikey

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"hash/crc32"
	"math/big"
	"strings"
)

// The format of a key: molrun_<id>_<secret>_<crc>. The secret has 256 random bits; the
// checksum detects a mistyped key without a database lookup.
const (
	keyPrefix    = "molrun"
	keyIDLength  = 12
	secretLength = 43
	crcLength    = 6
	base62       = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// New generates a key and returns it with its ID and secret.
func New() (key, id, secret string) {
	letters := make([]byte, keyIDLength)
	for i := range letters {
		n, _ := rand.Int(rand.Reader, big.NewInt(26)) // never fails (crypto/rand)
		letters[i] = 'a' + byte(n.Int64())
	}
	random := make([]byte, 32)
	rand.Read(random)
	id, secret = string(letters), base62Text(new(big.Int).SetBytes(random), secretLength)
	body := keyPrefix + "_" + id + "_" + secret
	return body + "_" + keyChecksum(body), id, secret
}

func keyChecksum(body string) string {
	return base62Text(new(big.Int).SetUint64(uint64(crc32.ChecksumIEEE([]byte(body)))), crcLength)
}

func base62Text(n *big.Int, length int) string {
	text := make([]byte, length)
	rest, base := new(big.Int), big.NewInt(62)
	for i := length - 1; i >= 0; i-- {
		n.DivMod(n, base, rest)
		text[i] = base62[rest.Int64()]
	}
	return string(text)
}

// Split returns the ID and secret of a well-formed key.
func Split(key string) (id, secret string, ok bool) {
	parts := strings.Split(key, "_")
	if len(parts) != 4 || parts[0] != keyPrefix || len(parts[1]) != keyIDLength || len(parts[2]) != secretLength {
		return "", "", false
	}
	return parts[1], parts[2], parts[3] == keyChecksum(strings.Join(parts[:3], "_"))
}

// ID returns the ID of a well-formed key, or "" for anything else.
func ID(key string) string {
	id, _, ok := Split(key)
	if !ok || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz") != "" {
		return ""
	}
	return id
}

// Hash returns the stored form of a secret: its SHA-256 hash in hex.
func Hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
