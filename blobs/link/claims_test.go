package link

import (
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

func TestClaimsThatAreNeverMadeAreRefused(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 40, 0, 0, time.UTC)
	date := func(after time.Duration) *jwt.NumericDate { return jwt.NewNumericDate(at.Add(after)) }
	for name, tt := range map[string]struct {
		change func(*claims)
		fits   bool
	}{
		"as made":               {func(*claims) {}, true},
		"longest life":          {func(c *claims) { c.ExpiresAt = date(MaxLifetime) }, true},
		"longer":                {func(c *claims) { c.ExpiresAt = date(MaxLifetime + time.Second) }, false},
		"no life":               {func(c *claims) { c.ExpiresAt = date(0) }, true},
		"ends before it begins": {func(c *claims) { c.ExpiresAt = date(-time.Second) }, false},
		"never ends":            {func(c *claims) { c.ExpiresAt = nil }, false},
		"never begins":          {func(c *claims) { c.IssuedAt = nil }, false},
		"begins later":          {func(c *claims) { c.NotBefore = date(0) }, false},
		"no ID":                 {func(c *claims) { c.ID = "" }, false},
		"no audience":           {func(c *claims) { c.Audience = nil }, false},
		"two audiences":         {func(c *claims) { c.Audience = append(c.Audience, "other") }, false},
	} {
		c := &claims{RegisteredClaims: jwt.RegisteredClaims{
			Audience: jwt.ClaimStrings{"it"}, ID: "id", IssuedAt: date(0), ExpiresAt: date(time.Hour),
		}}
		tt.change(c)
		if err := c.check(); tt.fits != (err == nil) {
			t.Errorf("%s: error %v, want one: %v", name, err, !tt.fits)
		}
	}
}
