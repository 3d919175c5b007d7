package cli

import (
	"fmt"
	"os"

	"github.com/rs/zerolog"

	"molrun/app/fault"
)

// ownDirectory makes the data directory, or closes it to all others.
func ownDirectory(data string, log zerolog.Logger) error {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	info, err := os.Stat(data)
	if err != nil {
		return fmt.Errorf("look at the data directory: %w", err)
	}
	perm := info.Mode().Perm()
	switch {
	case perm&0o022 != 0: // what lies in it may be anybody's
		return fault.Errorf(fault.Invalid, "others may write to %s (mode %#o): look at what is in it, then run chmod 700 on it", data, perm)
	case perm&0o077 == 0:
		return nil
	}
	if err := os.Chmod(data, 0o700); err != nil {
		return fault.Errorf(fault.Invalid, "others may look into %s (mode %#o) and this can't be changed: %v; run chmod 700 on it as its owner", data, perm, err)
	}
	log.Warn().Str("data", data).Str("mode", fmt.Sprintf("%#o", perm)).Msg("others could look into the data directory; it is closed to them now")
	return nil
}

// fit lowers the bounds on clients to what the system allows.
func (s *service) fit() error {
	files, err := openFiles()
	if err != nil {
		return fmt.Errorf("ask how many files may be open: %w", err)
	}
	wanted := s.config.Limits
	s.config.Limits = fitFiles(wanted, files)
	if got := s.config.Limits; got != wanted {
		s.log.Warn().Int("files", files).Int("connections", got.Connections).Int("streams", got.Streams).
			Msg("the system allows few open files, so fewer connections and transfers are taken; raise it (LimitNOFILE, ulimit -n) for more")
	}
	return nil
}
