package apikey

import (
	"fmt"
	"net/netip"
	"testing"

	"molrun/app/test/must"
)

func TestUnknownRolesAndScopesAllowNothing(t *testing.T) {
	for name, k := range map[string]Key{
		"no role": {}, "an unknown role": {Role: "king"}, "an unknown scope": {Role: Admin, Scopes: []Scope{"all"}},
		"a role in capitals": {Role: "Admin"}, "a scope beyond the role": {Role: Viewer, Scopes: []Scope{ScopeSubmit, ScopeAdmin}},
	} {
		must.Equal(t, fmt.Sprintf("%s allows", name), k.Rights(), 0)
	}
	k := Key{Role: Member, Scopes: []Scope{ScopeSubmit, ScopeAdmin}}
	must.Equal(t, "the scopes submit and admin of a member allow", k.Rights(), Submit)
	if k := (Key{Role: Admin}); !k.Rights().Has(Read|Submit|Administer) || !k.Admits(netip.Addr{}) {
		t.Errorf("an admin without limits: %b", k.Rights())
	}
}
