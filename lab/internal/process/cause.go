package process

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// Failure is an unexpected end of a part.
type Failure struct {
	Part  string
	State string
	// Cause is the line of the log that explains it best, or empty.
	Cause string
	Log   string
}

func (f *Failure) Error() string {
	if f.Cause == "" {
		return fmt.Sprintf("%s ended (%s): see %s", f.Part, f.State, f.Log)
	}
	return fmt.Sprintf("%s ended (%s): %s (log: %s)", f.Part, f.State, f.Cause, f.Log)
}

// PortTaken tells whether the part could not listen on its port.
func (f *Failure) PortTaken() bool {
	return strings.Contains(f.Cause, "address already in use")
}

// FullDisk tells whether the part had no room to write.
func (f *Failure) FullDisk() bool {
	return strings.Contains(f.Cause, "no space left on device")
}

const (
	tailBytes  = 64 << 10
	causeBytes = 400
)

// Cause returns the most telling line at the end of a log: the last error or
// fatal line of the formats that the parts use, or else the last line.
func Cause(path string) string {
	content, err := tail(path)
	if err != nil {
		return ""
	}
	grave := regexp.MustCompile(`^[EF]\d{4} |^(Error|error|panic|fatal error): |"level":"(?i:error|fatal|panic)"`)
	last, telling := "", ""
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		last = line
		if grave.MatchString(line) {
			telling = line
		}
	}
	if telling == "" {
		telling = last
	}
	telling = plain(telling)
	if len(telling) > causeBytes {
		telling = telling[:causeBytes] + "…"
	}
	return telling
}

// plain takes the frame of a log format off a line: the JSON of etcd and kwok,
// the header of klog.
func plain(line string) string {
	var entry struct{ Msg, Error, Err string }
	if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg != "" {
		for _, detail := range []string{entry.Error, entry.Err} {
			if detail != "" {
				return entry.Msg + ": " + detail
			}
		}
		return entry.Msg
	}
	return regexp.MustCompile(`^[IWEF]\d{4} [^\]]*\] `).ReplaceAllString(line, "")
}

func tail(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	start := max(0, info.Size()-tailBytes)
	content := make([]byte, info.Size()-start)
	n, err := file.ReadAt(content, start)
	if n == 0 && err != nil {
		return "", err
	}
	return string(content[:n]), nil
}
