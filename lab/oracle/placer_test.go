package oracle

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"testing"
)

// buildPlacer compiles Tenon's side of the oracle from the tree around the lab.
func buildPlacer(t *testing.T) string {
	t.Helper()
	if ready := setting("placer"); ready != "" {
		return ready
	}
	path := filepath.Join(t.TempDir(), "placer")
	cmd := exec.Command("go", "build", "-o", path, "./internal/oracle")
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build Tenon's side of the oracle: %v\n%s", err, out)
	}
	return path
}

// placer is a running process that answers clusters.
type placer struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *json.Decoder
	stderr bytes.Buffer
}

func startPlacer(path string) (*placer, error) {
	p := &placer{cmd: exec.Command(path)}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("open the placer's input: %w", err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("open the placer's output: %w", err)
	}
	p.in, p.out = in, json.NewDecoder(bufio.NewReaderSize(out, 1<<20))
	p.cmd.Stderr = &p.stderr
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the placer: %w", err)
	}
	return p, nil
}

// place asks for the placement of a cluster.
func (p *placer) place(w *world) (*placement, error) {
	question, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("write a cluster: %w", err)
	}
	if _, err := p.in.Write(append(question, '\n')); err != nil {
		return nil, p.died(fmt.Errorf("send a cluster: %w", err))
	}
	var answer placement
	if err := p.out.Decode(&answer); err != nil {
		return nil, p.died(fmt.Errorf("read a placement: %w", err))
	}
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	return &answer, nil
}

// crash is a process that ended in the middle of its work; no more can be asked of it.
type crash struct{ error }

func (p *placer) died(err error) error {
	_ = p.in.Close()
	_ = p.cmd.Wait()
	return crash{fmt.Errorf("%w\n%s", err, bytes.TrimSpace(p.stderr.Bytes()))}
}

func (p *placer) stop() {
	_ = p.in.Close()
	_ = p.cmd.Wait()
}
