package slurm

import (
	"context"
	"fmt"
	"os/user"
	"strconv"
	"strings"
)

// association is this user's association with an account in Slurm's accounting.
type association struct {
	User, Account string
	Exists        bool
	MaxSubmit     int // maximum number of jobs at once, from the limits of user and account; 0 means no limit
}

// Association queries sacctmgr for this user's association with an account, by default
// the user's default account. It ignores parent accounts.
func (c *client) Association(ctx context.Context, cluster, account string) (a association, err error) {
	me, err := user.Current()
	if err != nil {
		return a, fmt.Errorf("find this user's name: %w", err)
	}
	if account == "" {
		text, err := c.runCommand(ctx, "", accountManager, "-n", "-P", "show", "user", me.Username, "format=DefaultAccount")
		if err != nil {
			return a, err
		}
		account = strings.TrimSpace(text)
	}
	a.User, a.Account = me.Username, account
	if account == "" {
		return a, nil
	}
	text, err := c.runCommand(ctx, "", accountManager, "-n", "-P", "show", "assoc", "where", "cluster="+cluster, "account="+account, "format=User,GrpSubmit,MaxSubmit")
	if err != nil {
		return a, err
	}
	return a.parseAssociation(text), nil
}

// parseAssociation parses one line for the account, whose user is empty, and one for each
// user.
func (a association) parseAssociation(text string) association {
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), "|")
		if len(fields) != 3 || fields[0] != "" && fields[0] != a.User {
			continue
		}
		limits := fields[1:]
		if fields[0] == "" {
			limits = fields[1:2] // the second limit is the default for users without their own
		}
		a.Exists = a.Exists || fields[0] != ""
		for _, limit := range limits {
			if n, err := strconv.Atoi(limit); err == nil && (a.MaxSubmit == 0 || n < a.MaxSubmit) {
				a.MaxSubmit = n
			}
		}
	}
	return a
}
