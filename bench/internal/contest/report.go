package contest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Report is what a comparison leaves in a file.
type Report struct {
	// Peer names the other contestant and its version; Go, OS, Arch and Cores say where both ran.
	Peer     string    `json:"peer"`
	Go       string    `json:"go"`
	OS       string    `json:"os"`
	Arch     string    `json:"arch"`
	Cores    int       `json:"cores"`
	Lines    []string  `json:"lines"`
	Rows     []*Row    `json:"rows"`
	Verdicts []Verdict `json:"verdicts"`
}

// NewReport puts the rows together with where they were measured.
func NewReport(peer string, rows []*Row) *Report {
	r := &Report{
		Peer: peer, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.GOMAXPROCS(0),
		Rows: rows, Verdicts: Judge(rows),
	}
	for _, row := range rows {
		r.Lines = append(r.Lines, row.Line())
	}
	return r
}

// Write writes the report to path, and makes the folder if there is none.
func (r *Report) Write(path string) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the figures: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make the folder of the figures: %w", err)
	}
	if err := os.WriteFile(path, append(content, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	return nil
}
