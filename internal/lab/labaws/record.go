package labaws

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// The files of a simulated account in the directory of its lab.
const (
	recordName = "aws.json"
	envName    = "aws.env"
	logName    = "logs/ec2sim.log"
)

// DirVariable names the lab of an account in the variables of EnvPath, so that commands find both.
const DirVariable = "TENON_LAB_DIR"

// Record says what runs.
type Record struct {
	PID int    `json:"pid"`
	URL string `json:"url"`
	// Env are the variables that a controller needs.
	Env []string `json:"env"`
}

// RecordPath is the file that tells of a running account. Its lock is held as long as the account runs; the kernel
// drops it with the process, so that a crash leaves nothing that misleads.
func RecordPath(dir string) string { return filepath.Join(dir, recordName) }

// EnvPath is a file of shell commands that set the variables of a controller.
func EnvPath(dir string) string { return filepath.Join(dir, envName) }

// LogPath is the log of an account that runs in the background.
func LogPath(dir string) string { return filepath.Join(dir, logName) }

// held is a directory whose account this process is.
type held struct {
	dir  string
	file *os.File
}

// hold takes the directory.
func hold(dir string) (*held, error) {
	file, err := os.OpenFile(RecordPath(dir), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the record of the simulated account: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fmt.Errorf("a simulated AWS account already runs for the lab in %s", dir)
		}
		return nil, errors.Join(err, file.Close())
	}
	return &held{dir: dir, file: file}, nil
}

// write tells others what runs. The file is the one that the lock is on, so it is written in place, the record in one
// piece.
func (h *held) write(r Record, kubeconfig string) error {
	if err := os.WriteFile(EnvPath(h.dir),
		[]byte(Exports(append(r.Env, "KUBECONFIG="+kubeconfig, DirVariable+"="+h.dir))), 0o600); err != nil {
		return fmt.Errorf("writing the variables of the simulated account: %w", err)
	}
	content, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = h.file.Truncate(0)
	}
	if err == nil {
		_, err = h.file.WriteAt(append(content, '\n'), 0)
	}
	if err != nil {
		return fmt.Errorf("writing the record of the simulated account: %w", err)
	}
	return nil
}

// release gives the directory back. The record stays, empty: removing it would let two accounts lock two files of one
// name.
func (h *held) release() error {
	err := os.Remove(EnvPath(h.dir))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, h.file.Truncate(0), h.file.Close())
}

// Running finds the account that runs for the lab in dir; ok is false if none does, or it is not ready yet.
func Running(dir string) (r Record, ok bool, err error) {
	file, err := os.Open(RecordPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, false, nil
	}
	if err != nil {
		return Record{}, false, fmt.Errorf("opening the record of the simulated account: %w", err)
	}
	defer func() { _ = file.Close() }()
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return Record{}, false, err
	}
	content, err := os.ReadFile(RecordPath(dir))
	if err != nil || len(content) == 0 {
		return Record{}, false, err
	}
	if err := json.Unmarshal(content, &r); err != nil {
		return Record{}, false, nil // it is just being written
	}
	return r, true, nil
}

// Exports are shell commands that set the variables.
func Exports(env []string) string {
	var out strings.Builder
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		fmt.Fprintf(&out, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	}
	return out.String()
}
