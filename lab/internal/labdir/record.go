package labdir

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

const record = "run.json"

// Record says what runs in a lab: written when the lab is ready, removed when
// it ends.
type Record struct {
	Supervisor int       `json:"supervisor"`
	Started    time.Time `json:"started"`
	Parts      []Part    `json:"parts"`
}

// Part is one process of a lab.
type Part struct {
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	Address string `json:"address"`
	// Health is the path on Address that answers 200 when the part is well.
	Health string `json:"health"`
}

// SaveRecord writes the record.
func (d Dir) SaveRecord(r Record) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the record of the lab: %w", err)
	}
	return d.Write(append(content, '\n'), record)
}

// LoadRecord reads the record; ok is false when there is none.
func (d Dir) LoadRecord() (r Record, ok bool, err error) {
	content, err := os.ReadFile(d.Path(record))
	if errors.Is(err, os.ErrNotExist) {
		return Record{}, false, nil
	}
	if err != nil {
		return Record{}, false, fmt.Errorf("read the record of the lab: %w", err)
	}
	if err := json.Unmarshal(content, &r); err != nil {
		return Record{}, false, fmt.Errorf("read the record of the lab in %s: %w", d.path, err)
	}
	return r, true, nil
}

// DropRecord removes the record.
func (d Dir) DropRecord() error {
	if err := os.Remove(d.Path(record)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the record of the lab: %w", err)
	}
	return nil
}
