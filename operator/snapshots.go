package operator

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/loop"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/replay"
	"github.com/tenon-sh/tenon/internal/version"
)

const (
	// snapshotFiles and snapshotBytes bound what is kept in --snapshot-dir, largestSnapshot what a single file may
	// have.
	snapshotFiles   = 20
	snapshotBytes   = 256 << 20
	largestSnapshot = 64 << 20
	// snapshotTime is how long somebody may take to read one from the metrics port: until then nobody else gets one.
	snapshotTime = time.Minute
	// snapshotPath is where the metrics port hands out a snapshot file of now.
	snapshotPath = "/debug/tenon/snapshot"
)

// defaultSnapshotDir is a folder below the system's own for what may be lost.
func defaultSnapshotDir() string { return filepath.Join(os.TempDir(), "tenon-snapshots") }

// recorder keeps snapshot files, if a folder for them is named. What an earlier process has left half-written is
// dropped.
func (o *options) recorder(log logr.Logger) loop.Recorder {
	if o.snapshotDir == "" {
		return nil
	}
	folder := &replay.Folder{Path: o.snapshotDir, Files: snapshotFiles, Bytes: snapshotBytes, Largest: largestSnapshot}
	if err := folder.Tidy(); err != nil {
		log.Error(err, "could not remove half-written files from the folder for snapshot files (--snapshot-dir); "+
			"they stay")
	}
	return folder
}

// snapshotPage hands out a snapshot file of the world as it is known now.
func snapshotPage(now func() *cluster.Snapshot, policy plan.Policy) http.Handler {
	var one sync.Mutex // each takes a snapshot of its own
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !one.TryLock() {
			http.Error(w, "a snapshot file is being written for somebody else; ask again", http.StatusTooManyRequests)
			return
		}
		defer one.Unlock()
		err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(snapshotTime))
		if err != nil && !errors.Is(err, http.ErrNotSupported) {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		s := now()
		w.Header().Set("Content-Type", "application/gzip")
		name := "tenon-snapshot-" + s.Now.UTC().Format("20060102T150405Z") + "-make.json.gz"
		w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
		c := &replay.Case{Engine: version.Name(), Taken: time.Now(), Step: replay.Make, Policy: policy, Snapshot: s}
		if err := replay.Write(w, c); err != nil {
			panic(http.ErrAbortHandler) // it has begun: whoever asks must not take what came for the whole
		}
	})
}
