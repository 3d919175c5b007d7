package audit

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"molrun/app/base/durable"
)

// Append adds an entry to the audit log of a data directory. A service might be writing
// to the log at the same time, so the entry is appended in a single write.
func Append(data string, e Entry) (err error) {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(data, Name), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := takeOwner(file, data); err != nil {
		return err
	}
	if _, err := file.Write(append(line, '\n')); err != nil {
		return err
	}
	return errors.Join(file.Sync(), durable.SyncFolder(data))
}

// takeOwner changes the owner of a file possibly created by root to the owner of the data
// directory. Otherwise the service could not append to it.
func takeOwner(file *os.File, data string) error {
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
