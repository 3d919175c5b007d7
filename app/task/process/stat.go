package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// stat is the part of /proc/PID/stat that this package needs.
type stat struct {
	parent int
	start  uint64
	zombie bool // it has exited, with all its threads
}

func readStat(pid int) (stat, error) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return stat{}, ErrGone
	}
	if err != nil {
		return stat{}, err
	}
	return parseStat(data)
}

// parseStat reads the fields after the program's name, which can itself contain spaces
// and parentheses.
func parseStat(data []byte) (stat, error) {
	const state, parent, threads, start = 0, 1, 17, 19 // fields 3, 4, 20 and 22, counted after the name
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) <= start {
		return stat{}, fmt.Errorf("process status %q has too few fields", data)
	}
	ppid, err := strconv.Atoi(string(fields[parent]))
	if err != nil {
		return stat{}, fmt.Errorf("process status: %w", err)
	}
	ticks, err := strconv.ParseUint(string(fields[start]), 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("process status: %w", err)
	}
	// A process whose first thread has exited is shown as a zombie, but runs until its
	// last thread exits.
	count, err := strconv.Atoi(string(fields[threads]))
	if err != nil {
		return stat{}, fmt.Errorf("process status: %w", err)
	}
	s := fields[state][0]
	return stat{parent: ppid, start: ticks, zombie: s == 'X' || s == 'Z' && count <= 1}, nil
}

// allPIDs returns the PIDs of all processes on the machine.
func allPIDs() ([]int, error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
