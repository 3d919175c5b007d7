package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/audit"
	"molrun/app/unit"
)

// byCommand is where acts come from that a command does by itself, not by a
// request to the service.
const byCommand = "command"

// tell notes in the audit log what a command did to the data directory as a
// whole. It is done already: that it can't be noted is said and changes
// nothing.
func tell(c *cobra.Command, data, action, object string) {
	e := audit.Entry{Time: unit.At(time.Now()), Action: action, Object: object, Result: "ok", Remote: byCommand}
	if err := appendAudit(data, e); err != nil {
		fmt.Fprintf(c.ErrOrStderr(), "warning: the audit log does not tell of this: %v\n", err)
	}
}

// appendAudit adds a line to the audit log beside a service that may be
// writing to it: in one write at the end of whatever is there.
func appendAudit(data string, e audit.Entry) (err error) {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(data, auditName), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := giveTo(file, data); err != nil {
		return err
	}
	if _, err := file.Write(append(line, '\n')); err != nil {
		return err
	}
	return file.Sync()
}

// giveTo makes a file that root may just have made the data directory's
// owner's, without whom the service could not go on with it.
func giveTo(file *os.File, data string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(data)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t) // molrun runs on Linux
	return file.Chown(int(owner.Uid), int(owner.Gid))
}
