package labdir

import (
	"errors"
	"fmt"
	"os"
)

// A wish to restart a part is a file, so that whoever ends the part need not talk to the supervisor: a part that ends
// without such a file has failed.
func restartFile(part string) string { return "restart-" + part }

// AskRestart asks the supervisor to start a part again when it ends next.
func (d Dir) AskRestart(part string) error {
	if err := d.Write(nil, restartFile(part)); err != nil {
		return fmt.Errorf("ask for a restart of %s: %w", part, err)
	}
	return nil
}

// TakeRestart tells whether somebody has asked for a restart of the part, and forgets it.
func (d Dir) TakeRestart(part string) bool {
	return os.Remove(d.Path(restartFile(part))) == nil
}

// DropRestarts forgets all wishes for these parts, which an earlier run may have left.
func (d Dir) DropRestarts(parts ...string) error {
	for _, part := range parts {
		if err := os.Remove(d.Path(restartFile(part))); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("forget a restart of %s: %w", part, err)
		}
	}
	return nil
}
