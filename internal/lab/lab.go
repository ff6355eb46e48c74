// Package lab finds or builds the executable of the lab, a real Kubernetes
// control plane on this machine, and runs it. The lab itself is the Go module in
// the folder lab/; nothing of Kubernetes is linked here. The package stands
// beside the floors: commands and tests use it, the autoscaler never does. It
// touches the go command, the user's cache directory and the processes it starts.
package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// BinaryVariable names the environment variable that points to a ready-made
// lab executable.
const BinaryVariable = "TENON_LAB_BINARY"

const (
	modulePath     = "github.com/tenon-sh/tenon/lab"
	executableName = "tenon-lab"
)

// Binary returns the path of the lab's executable. It builds the executable
// first if the cache has none for these sources and this compiler, and tells
// progress how that goes.
func Binary(ctx context.Context, progress io.Writer) (string, error) {
	if path := os.Getenv(BinaryVariable); path != "" {
		return givenBinary(path)
	}
	source, err := findSource()
	if err != nil {
		return "", err
	}
	tool, err := newToolchain(ctx, source)
	if err != nil {
		return "", err
	}
	key, err := sourceKey(source, tool.identity)
	if err != nil {
		return "", err
	}
	cache, err := openCache()
	if err != nil {
		return "", err
	}
	if path, ok := cache.lookup(key); ok {
		return path, nil
	}
	return cache.build(ctx, key, tool, progress)
}

func givenBinary(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("%s=%s is not an executable file: correct it, or unset it to build the lab",
			BinaryVariable, path)
	}
	return filepath.Abs(path)
}

// findSource looks for the folder lab/ upwards from the working directory and
// from the running executable.
func findSource() (string, error) {
	working, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the working directory: %w", err)
	}
	starts := []string{working}
	if executable, err := os.Executable(); err == nil {
		if resolved, err := filepath.EvalSymlinks(executable); err == nil {
			executable = resolved
		}
		starts = append(starts, filepath.Dir(executable))
	}
	for _, start := range starts {
		for folder := start; ; folder = filepath.Dir(folder) {
			for _, candidate := range []string{filepath.Join(folder, "lab"), folder} {
				if isSource(candidate) {
					return candidate, nil
				}
			}
			if folder == filepath.Dir(folder) {
				break
			}
		}
	}
	return "", fmt.Errorf(
		"no lab/ folder at or above %s: run inside a clone of the repository, or set %s to a built lab", working,
		BinaryVariable)
}

func isSource(folder string) bool {
	content, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(content)) {
		if strings.TrimSpace(line) == "module "+modulePath {
			return true
		}
	}
	return false
}

// cache keeps built executables, one folder for each key.
type cache struct {
	folder string
}

// keptBuilds is how many executables stay: this checkout's, and that of a
// second one that somebody switches to and fro.
const keptBuilds = 2

func openCache() (cache, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return cache{}, fmt.Errorf("find the user's cache directory (set HOME or XDG_CACHE_HOME, or %s): %w",
			BinaryVariable, err)
	}
	c := cache{folder: filepath.Join(base, "tenon", "lab")}
	if err := os.MkdirAll(c.folder, 0o755); err != nil {
		return cache{}, fmt.Errorf("make the cache of built labs: %w", err)
	}
	return c, nil
}

func (c cache) path(key string) string { return filepath.Join(c.folder, key, executableName) }

// lookup finds a built executable and marks it as used.
func (c cache) lookup(key string) (string, bool) {
	path := c.path(key)
	if _, err := os.Stat(path); err != nil {
		return "", false
	}
	now := time.Now()
	_ = os.Chtimes(filepath.Dir(path), now, now)
	return path, true
}

// prune removes all but the most recently used executables. The caller holds
// the lock of the cache.
func (c cache) prune() error {
	entries, err := os.ReadDir(c.folder)
	if err != nil {
		return fmt.Errorf("list the cache of built labs: %w", err)
	}
	used := map[string]time.Time{}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && entry.IsDir() {
			used[entry.Name()] = info.ModTime()
		}
	}
	var errs []error
	for len(used) > keptBuilds {
		oldest := ""
		for name, at := range used {
			if oldest == "" || at.Before(used[oldest]) || at.Equal(used[oldest]) && name < oldest {
				oldest = name
			}
		}
		delete(used, oldest)
		errs = append(errs, os.RemoveAll(filepath.Join(c.folder, oldest)))
	}
	return errors.Join(errs...)
}
