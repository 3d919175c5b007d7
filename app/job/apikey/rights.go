package apikey

// Rights are what a caller may do in the organization, one bit each.
type Rights uint8

// The rights.
const (
	Read       Rights = 1 << iota // see everything
	Submit                        // add jobs, files and keys of its own, change and delete them
	Administer                    // the same with those of others; manage users and keys
)

// Has reports whether rights include all of others.
func (r Rights) Has(others Rights) bool { return r&others == others }

// Role is what a user may do in the organization.
type Role string

// The roles, each with what the one before may do.
const (
	Viewer Role = "viewer"
	Member Role = "member"
	Admin  Role = "admin"
)

// Rights returns what a role allows: nothing if it is unknown.
func (r Role) Rights() Rights {
	switch r {
	case Viewer:
		return Read
	case Member:
		return Read | Submit
	case Admin:
		return Read | Submit | Administer
	}
	return 0
}

// RoleWith returns the role that allows exactly these rights, "" if none does.
func RoleWith(rights Rights) Role {
	for _, r := range []Role{Viewer, Member, Admin} {
		if r.Rights() == rights {
			return r
		}
	}
	return ""
}

// Scope is a right that a key is limited to.
type Scope string

// The scopes.
const (
	ScopeRead   Scope = "read"
	ScopeSubmit Scope = "submit"
	ScopeAdmin  Scope = "admin"
)

// Rights returns what a scope stands for: nothing if it is unknown.
func (s Scope) Rights() Rights {
	switch s {
	case ScopeRead:
		return Read
	case ScopeSubmit:
		return Submit
	case ScopeAdmin:
		return Administer
	}
	return 0
}
