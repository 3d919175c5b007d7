package run

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"molrun/app/base/durable"
	"molrun/app/engine/md"
)

// A checkpoint is a line that identifies its format, the SHA-256 of the settings, an
// archive of the state, and a CRC-32 of all of these.
const (
	checkpointMark    = "molrun checkpoint 1\n"
	checkpointFile    = "checkpoint.bin"
	oldCheckpointFile = "checkpoint.old.bin" // the previous checkpoint, in case the current one is damaged
)

// newCheckpoint returns the content of a checkpoint.
func newCheckpoint(settingsHash []byte, state func(*md.Archive)) []byte {
	a := md.NewArchive(append([]byte(checkpointMark), settingsHash...))
	state(a)
	return binary.LittleEndian.AppendUint32(a.Bytes(), crc32.ChecksumIEEE(a.Bytes()))
}

// openCheckpoint verifies a checkpoint and returns its archive.
func openCheckpoint(content, settingsHash []byte) (*md.Archive, error) {
	body, ok := bytes.CutPrefix(content, []byte(checkpointMark))
	if !ok || len(body) < sha256.Size+4 {
		return nil, errors.New("not a checkpoint of this version")
	}
	end := len(content) - 4
	if crc32.ChecksumIEEE(content[:end]) != binary.LittleEndian.Uint32(content[end:]) {
		return nil, errors.New("corrupt")
	}
	if !bytes.Equal(body[:sha256.Size], settingsHash) {
		return nil, errors.New("it was written with different settings")
	}
	return md.OpenArchive(body[sha256.Size : len(body)-4]), nil
}

// writeCheckpoint writes content as the checkpoint of a folder and keeps the previous
// checkpoint as the old one.
func writeCheckpoint(folder string, content []byte) error {
	current := filepath.Join(folder, checkpointFile)
	temporary := filepath.Join(folder, "."+checkpointFile+".tmp")
	if err := writeSynced(temporary, content); err != nil {
		return err
	}
	err := os.Rename(current, filepath.Join(folder, oldCheckpointFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(temporary, current); err != nil {
		return err
	}
	return durable.SyncFolder(folder)
}

func writeSynced(path string, content []byte) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Sync(), file.Close())
}

// removeCheckpoints removes both checkpoints.
func removeCheckpoints(folder string) error {
	for _, name := range []string{oldCheckpointFile, checkpointFile} {
		if err := os.Remove(filepath.Join(folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// SettingsHash returns a hash that identifies settings that give the same results.
func SettingsHash(settings ...any) []byte {
	text, err := json.Marshal(settings)
	if err != nil {
		panic(err) // numbers and strings always marshal
	}
	hash := sha256.Sum256(text)
	return hash[:]
}
