package apikey

import (
	"net/netip"
	"testing"
)

func TestUnknownRolesAndScopesAllowNothing(t *testing.T) {
	for name, k := range map[string]Key{
		"no role": {}, "an unknown role": {Role: "king"}, "an unknown scope": {Role: Admin, Scopes: []Scope{"all"}},
		"a role in capitals": {Role: "Admin"}, "a scope beyond the role": {Role: Viewer, Scopes: []Scope{ScopeSubmit, ScopeAdmin}},
	} {
		if r := k.Rights(); r != 0 {
			t.Errorf("%s allows %b", name, r)
		}
	}
	k := Key{Role: Member, Scopes: []Scope{ScopeSubmit, ScopeAdmin}}
	if r := k.Rights(); r != Submit {
		t.Errorf("the scopes submit and admin of a member allow %b", r)
	}
	if k := (Key{Role: Admin}); !k.Rights().Has(Read|Submit|Administer) || !k.Admits(netip.Addr{}) {
		t.Errorf("an admin without limits: %b", k.Rights())
	}
}
