package app

import (
	"time"

	"molrun/app/algorithm/routing"
	"molrun/app/job/apikey"
)

// Caller is the user behind an API key.
type Caller struct {
	KeyID        string
	Organization string
	Email        string
	Rights       apikey.Rights
	At           time.Time // when the key was found to be valid
	Operator     bool      // the operator of the service, who has no key
	Session      string    // hash of the session's secret, "" without one
}

// Operator is the caller of the control socket.
func Operator() Caller {
	return Caller{Email: "the operator", Operator: true, Rights: apikey.Admin.Rights()}
}

// routed returns the caller as routing rules see it.
func (c Caller) routed() routing.User {
	return routing.User{Organization: c.Organization, Email: c.Email}
}

// Administers reports whether the caller acts as an admin of its organization.
func (c Caller) Administers() bool { return c.Rights.Has(apikey.Administer) }

// May reports whether the caller may change what belongs to owner.
func (c Caller) May(owner string) bool { return c.Administers() || c.Email == owner }
