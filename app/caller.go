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
	At           time.Time // when the key was last validated
	Operator     bool      // the operator of the service, who has no key
	Session      string    // hash of the session secret; "" if there is no session
}

// Operator returns the caller that represents the control socket.
func Operator() Caller {
	return Caller{Email: "the operator", Operator: true, Rights: apikey.Admin.Rights()}
}

// routed returns the caller in the form used by routing rules.
func (c Caller) routed() routing.User {
	return routing.User{Organization: c.Organization, Email: c.Email}
}

// Administers reports whether the caller has admin rights in its organization.
func (c Caller) Administers() bool { return c.Rights.Has(apikey.Administer) }

// May reports whether the caller is allowed to change resources of owner.
func (c Caller) May(owner string) bool { return c.Administers() || c.Email == owner }
