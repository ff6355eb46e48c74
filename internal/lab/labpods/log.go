package labpods

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// log is what a container prints, a time before each line.
type log struct {
	mu   sync.Mutex
	file *os.File
	rest []byte // the beginning of a line
}

// openLog begins a new log; the one before is kept beside it.
func openLog(path string) (*log, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := os.Rename(path, previous(path)); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	return &log{file: file}, nil
}

// previous is the log of the process before.
func previous(path string) string { return strings.TrimSuffix(path, ".log") + ".previous.log" }

// Write takes output as it comes.
func (l *log) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, text...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			return len(text), nil
		}
		if err := l.line(line); err != nil {
			return 0, err
		}
		l.rest = append([]byte(nil), rest...)
	}
}

func (l *log) line(text []byte) error {
	_, err := l.file.WriteString(time.Now().UTC().Format(time.RFC3339Nano) + " " + string(text) + "\n")
	return err
}

func (l *log) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rest) > 0 {
		_ = l.line(l.rest)
	}
	_ = l.file.Close()
}

// lastLine is the last thing that a process said: mostly why it ended.
func lastLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	_, said, _ := strings.Cut(lines[len(lines)-1], " ")
	return said
}
