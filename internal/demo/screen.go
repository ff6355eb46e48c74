package demo

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

const (
	// redraw is how often the clock of the table moves.
	redraw = 100 * time.Millisecond
	// every is how often lines are written at most, where no table can be drawn.
	every = 250 * time.Millisecond
	// lookFor is how long a full table stays before the show goes on; only people need it.
	lookFor = 2 * time.Second
	// margin is how many lines of a terminal the table leaves alone.
	margin = 4
)

// The few control sequences that the table needs.
const (
	up        = "\x1b[%dA"
	clearDown = "\x1b[J"
	bold      = "\x1b[1m"
	dim       = "\x1b[2m"
	green     = "\x1b[32m"
	yellow    = "\x1b[33m"
	plain     = "\x1b[0m"
)

// screen shows views: as a table that is redrawn in place on a terminal, as lines about what has changed otherwise.
type screen struct {
	out      io.Writer
	terminal *os.File // nil if out is none
	coloured bool
	drawn    int   // lines of the table that stand above the cursor
	rows     []row // the last view's, with those that have gone since the title
	totals   string
	shown    time.Duration // when lines were last written
}

func newScreen(out io.Writer) *screen {
	s := &screen{out: out}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		s.terminal, s.coloured = f, os.Getenv("NO_COLOR") == ""
	}
	return s
}

func (s *screen) paint(colour, text string) string {
	if !s.coloured || colour == "" {
		return text
	}
	return colour + text + plain
}

// title begins a new part of the show.
func (s *screen) title(format string, args ...any) {
	s.drawn, s.totals, s.shown = 0, "", 0
	s.rows = slices.DeleteFunc(s.rows, func(r row) bool { return r.Status == gone })
	fmt.Fprintln(s.out, s.paint(bold, "==> "+fmt.Sprintf(format, args...)))
}

// draw shows the view; last says that this part of the show ends with it.
func (s *screen) draw(v view, pods int, took time.Duration, last bool) {
	if s.terminal == nil && !last && s.totals != "" && took-s.shown < every {
		return
	}
	before := s.rows
	s.rows, s.shown = remember(v.Rows, before), took
	totals := fmt.Sprintf("%d/%d pods running, %d nodes, $%.4f/h", v.Running, pods, v.Nodes(), v.Price())
	if s.terminal != nil {
		s.table(fmt.Sprintf("%s, %.1f s", totals, took.Seconds()))
		return
	}
	for _, line := range changes(before, s.rows) {
		fmt.Fprintf(s.out, "%7.1f s  %s\n", took.Seconds(), line)
	}
	if totals != s.totals {
		fmt.Fprintf(s.out, "%7.1f s  %s\n", took.Seconds(), totals)
		s.totals = totals
	}
}

// linger gives people time to read a full table.
func (s *screen) linger(ctx context.Context) {
	if s.terminal == nil {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(lookFor):
	}
}

// remember completes the rows with what was known before: nodes that are no more, and what a row has lost.
func remember(now, before []row) []row {
	out := slices.Clone(now)
	for _, was := range before {
		i := slices.IndexFunc(out, func(r row) bool { return r.Name == was.Name })
		if i < 0 {
			was.Status, was.Pods = gone, 0
			out = append(out, was)
			continue
		}
		r := &out[i]
		r.Type, r.Zone, r.Terms = cmp.Or(r.Type, was.Type), cmp.Or(r.Zone, was.Zone), cmp.Or(r.Terms, was.Terms)
		r.Price = cmp.Or(r.Price, was.Price)
	}
	slices.SortFunc(out, func(a, b row) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// changes describes the rows whose status is another than before.
func changes(before, now []row) []string {
	was := make(map[string]status, len(before))
	for _, r := range before {
		was[r.Name] = r.Status
	}
	var out []string
	for _, r := range now {
		if was[r.Name] == r.Status {
			continue
		}
		line := fmt.Sprintf("node %s %s", r.Name, r.Status)
		if r.Type != "" {
			line += fmt.Sprintf(" (%s, %s, %s%s)", r.Type, r.Zone, r.Terms, dollars(r.Price))
		}
		out = append(out, line)
	}
	return out
}

// dollars is the price as the end of a list; nothing until it is known.
func dollars(price float64) string {
	if price == 0 {
		return ""
	}
	return fmt.Sprintf(", $%.4f/h", price)
}

// table draws the rows over the ones that stand there.
func (s *screen) table(totals string) {
	width, height, err := term.GetSize(int(s.terminal.Fd()))
	if err != nil || width <= 0 || height <= margin {
		width, height = 80, 24
	}
	var text bytes.Buffer
	if s.drawn > 0 {
		fmt.Fprintf(&text, up, s.drawn)
	}
	text.WriteString("\r" + clearDown)
	lines := s.lines(height - margin)
	lines = append(lines, line{bold, "    " + totals})
	for _, l := range lines {
		text.WriteString(s.paint(l.colour, clip(l.text, width-1)) + "\n")
	}
	s.drawn = len(lines)
	// One write, so that nobody sees half a table.
	_, _ = s.out.Write(text.Bytes())
}

// line is a line of the table in one colour.
type line struct{ colour, text string }

// lines lays the rows out in columns, in at most limit lines.
func (s *screen) lines(limit int) []line {
	cells := [][]string{{"NODE", "TYPE", "ZONE", "CAPACITY", "$/HOUR", "PODS", "STATUS"}}
	colours := []string{dim}
	for _, r := range s.rows {
		price := "-"
		if r.Price > 0 {
			price = fmt.Sprintf("%.4f", r.Price)
		}
		cells = append(cells, []string{r.Name, orDash(r.Type), orDash(r.Zone), orDash(r.Terms), price,
			fmt.Sprint(r.Pods), string(r.Status)})
		colours = append(colours, colourOf(r.Status))
	}
	hidden := 0
	if len(cells) > limit && limit > 2 {
		hidden = len(cells) - limit + 1
		cells = cells[:limit-1]
	}
	var out []line
	for i, text := range align(cells, 4, 5) {
		out = append(out, line{colours[i], "    " + text})
	}
	if hidden > 0 {
		out = append(out, line{dim, fmt.Sprintf("    and %d more", hidden)})
	}
	return out
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func colourOf(s status) string {
	switch s {
	case ready:
		return green
	case gone:
		return dim
	default:
		return yellow
	}
}

// align pads the cells to columns; those named are aligned to the right.
func align(cells [][]string, right ...int) []string {
	widths := make([]int, len(cells[0]))
	for _, row := range cells {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	out := make([]string, len(cells))
	for n, row := range cells {
		padded := make([]string, len(row))
		for i, cell := range row {
			if slices.Contains(right, i) {
				padded[i] = fmt.Sprintf("%*s", widths[i], cell)
			} else {
				padded[i] = fmt.Sprintf("%-*s", widths[i], cell)
			}
		}
		out[n] = strings.TrimRight(strings.Join(padded, "  "), " ")
	}
	return out
}

// clip cuts a line that would wrap, because a wrapped line can't be drawn over.
func clip(text string, width int) string {
	if runes := []rune(text); len(runes) > width && width > 0 {
		return string(runes[:width])
	}
	return text
}

// indented is a writer whose lines stand under the title.
func (s *screen) indented() io.Writer { return &indenter{out: s.out, start: true} }

type indenter struct {
	out   io.Writer
	start bool // of a line
}

func (w *indenter) Write(text []byte) (int, error) {
	var out bytes.Buffer
	for _, b := range text {
		if w.start {
			out.WriteString("    ")
		}
		out.WriteByte(b)
		w.start = b == '\n'
	}
	if _, err := w.out.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(text), nil
}
