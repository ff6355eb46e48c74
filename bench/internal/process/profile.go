package process

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// ProfileCPU writes a profile of the processor time of the next so many seconds to a file. The process must serve it.
func (p *Process) ProfileCPU(ctx context.Context, length time.Duration, path string) error {
	return p.profile(ctx, fmt.Sprintf("profile?seconds=%d", int(length.Seconds())), path)
}

// ProfileHeap writes a profile of the memory in use to a file, after a garbage collection.
func (p *Process) ProfileHeap(ctx context.Context, path string) error {
	return p.profile(ctx, "heap?gc=1", path)
}

func (p *Process) profile(ctx context.Context, what, path string) error {
	url := fmt.Sprintf("http://127.0.0.1:%d/debug/pprof/%s", p.spec.MetricsPort, what)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("ask %s for a profile: %w", p.spec.Name, err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask %s for a profile: %w", p.spec.Name, err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("ask %s for a profile: %s", p.spec.Name, answer.Status)
	}
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("read a profile of %s: %w", p.spec.Name, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make the folder of profiles: %w", err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("write a profile: %w", err)
	}
	return nil
}
