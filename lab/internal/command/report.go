package command

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/lab/internal/labdir"
)

// reporter tells the user, and the program that started a supervisor, how the
// start goes. On the report file each line is a word and a text: "progress",
// "ready" or "error".
type reporter struct {
	out  io.Writer
	file *os.File
}

func (r reporter) progress(text string) {
	fmt.Fprintln(r.out, "lab:", text)
	r.send("progress", text)
}

func (r reporter) ready(dir labdir.Dir, took time.Duration) {
	fmt.Fprintln(r.out, readyText(dir, took))
	r.send("ready", readyText(dir, took))
	if r.file != nil {
		_ = r.file.Close()
	}
}

// end passes the outcome on, to the report file too.
func (r reporter) end(err error) error {
	if err != nil {
		r.send("error", err.Error())
	}
	return err
}

func (r reporter) send(word, text string) {
	if r.file != nil {
		// Nobody may be listening any more; the lab goes on.
		_, _ = fmt.Fprintf(r.file, "%s %s\n", word, strings.ReplaceAll(text, "\n", "; "))
	}
}

func readyText(dir labdir.Dir, took time.Duration) string {
	return fmt.Sprintf("lab: ready in %.1f s; use it with: export KUBECONFIG=%s", took.Seconds(), dir.Kubeconfig())
}

// follow reads a supervisor's report until it is ready (nil) or has failed.
func follow(report io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(report)
	for lines.Scan() {
		word, text, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "progress":
			fmt.Fprintln(out, "lab:", text)
		case "ready":
			fmt.Fprintln(out, text)
			return nil
		case "error":
			return fmt.Errorf("%s", text)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the report of the supervisor: %w", err)
	}
	return fmt.Errorf("the supervisor of the lab ended without a word")
}
