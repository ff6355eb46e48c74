package process

import (
	"fmt"
	"io"
	"os"
)

const lifelineVariable = "TENON_LAB_LIFELINE"

// Lifeline ties parts to their supervisor on every system, whatever ends the
// supervisor: each part reads a pipe that only the supervisor can write to,
// and the kernel closes that pipe when the supervisor is gone.
type Lifeline struct {
	end  *os.File
	hold *os.File
}

// NewLifeline makes the pipe.
func NewLifeline() (*Lifeline, error) {
	end, hold, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the lifeline of the parts: %w", err)
	}
	return &Lifeline{end: end, hold: hold}, nil
}

// Close lets go: the parts end.
func (l *Lifeline) Close() error {
	_ = l.end.Close()
	if err := l.hold.Close(); err != nil {
		return fmt.Errorf("close the lifeline of the parts: %w", err)
	}
	return nil
}

// FollowLifeline makes this process end with its supervisor. It does nothing
// in a process that a person started.
func FollowLifeline() {
	if os.Getenv(lifelineVariable) == "" {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		fmt.Fprintln(os.Stderr, "the supervisor of the lab is gone: ending")
		os.Exit(1)
	}()
}
