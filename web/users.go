package web

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/base/unit"
	"molrun/app/job/access"
	"molrun/app/job/apikey"
	"molrun/web/decode"
	"molrun/web/respond"
)

// users manages the users of the caller's organization or, on the control socket, of all
// organizations.
type users struct{ svc *access.Accounts }

type userView struct {
	Organization string      `json:"organization"`
	Email        string      `json:"email"`
	Role         apikey.Role `json:"role"`
	Disabled     bool        `json:"disabled"`
	CreatedAt    unit.Time   `json:"createdAt"`
	LastUsedAt   unit.Time   `json:"lastUsedAt,omitzero"` // accurate to a minute or two
	Keys         int         `json:"keys"`
	Jobs         int         `json:"jobs"`
}

func viewUser(u *access.User) userView {
	return userView{u.Organization, u.Email, u.Role, u.Disabled, u.CreatedAt, u.UsedAt, u.Keys, u.Jobs}
}

// list handles GET /admin/users.
func (h users) list(c *gin.Context, by app.Caller) error {
	if err := decode.Empty(c); err != nil {
		return err
	}
	found, err := h.svc.Users(c.Request.Context(), by)
	if err != nil {
		return err
	}
	views := make([]userView, len(found))
	for i, u := range found {
		views[i] = viewUser(u)
	}
	return respond.JSON(c.Writer, http.StatusOK, map[string]any{"users": views})
}

// userName identifies a user in a path. The operator also specifies the organization.
type userName struct{ organization, email string }

func readUser(r *decode.Reader, by app.Caller) userName {
	n := userName{by.Organization, r.Path("email")}
	if by.Operator {
		n.organization = r.RequiredText("organization")
	}
	return n
}

// change handles PATCH /admin/users/{email}.
func (h users) change(c *gin.Context, by app.Caller) error {
	var name userName
	change, err := decode.Request(c, func(r *decode.Reader) access.UserChange {
		name = readUser(r, by)
		b := r.Object(decode.Required)
		change := access.UserChange{Role: apikey.Role(b.Text("role", decode.Optional))}
		if disabled := b.Flag("disabled"); b.Has("disabled") {
			change.Disabled = &disabled
		}
		return change
	})
	if err != nil {
		return err
	}
	u, err := h.svc.ChangeUser(c.Request.Context(), by, name.organization, name.email, change)
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, viewUser(u))
}

// delete handles DELETE /admin/users/{email}.
func (h users) delete(c *gin.Context, by app.Caller) error {
	name, err := decode.Request(c, func(r *decode.Reader) userName {
		r.NoBody()
		return readUser(r, by)
	})
	if err != nil {
		return err
	}
	if err := h.svc.DeleteUser(c.Request.Context(), by, name.organization, name.email); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}
