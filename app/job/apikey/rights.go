package apikey

// Rights is a bit set of what a caller is allowed to do in the organization.
type Rights uint8

// The rights.
const (
	Read       Rights = 1 << iota // see everything
	Submit                        // add, change and delete own jobs, files and keys
	Administer                    // change and delete those of others; manage users and keys
)

// Has reports whether r includes all of others.
func (r Rights) Has(others Rights) bool { return r&others == others }

// Role is what a user is allowed to do in the organization.
type Role string

// The roles. Each includes the rights of the one before.
const (
	Viewer Role = "viewer"
	Member Role = "member"
	Admin  Role = "admin"
)

// Rights returns the rights of a role, 0 for an unknown role.
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

// RoleWith returns the role with exactly these rights, or "" if there is none.
func RoleWith(rights Rights) Role {
	for _, r := range []Role{Viewer, Member, Admin} {
		if r.Rights() == rights {
			return r
		}
	}
	return ""
}

// Scope is a right that a key is restricted to.
type Scope string

// The scopes.
const (
	ScopeRead   Scope = "read"
	ScopeSubmit Scope = "submit"
	ScopeAdmin  Scope = "admin"
)

// Rights returns the rights of a scope, 0 for an unknown scope.
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
