package demo

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestLinesTellWhatChanges(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out)
	n := row{Name: "default-1", Status: launching}
	s.title("scaling")
	s.draw(view{Rows: []row{n}}, 2, time.Second, false)
	n.Type, n.Zone, n.Terms, n.Price, n.Status = "c7i.large", "us-west-2a", "spot", 0.0311, ready
	s.draw(view{Rows: []row{n}, Pods: 2, Running: 1}, 2, 1100*time.Millisecond, false) // too soon to be worth a line
	s.draw(view{Rows: []row{n}, Pods: 2, Running: 2}, 2, 1200*time.Millisecond, true)
	s.title("deleting")
	s.draw(view{Rows: []row{{Name: "default-1", Status: leaving}}}, 2, time.Second, false)
	s.draw(view{}, 2, 2*time.Second, false)
	s.draw(view{}, 2, 3*time.Second, true)
	want := `==> scaling
    1.0 s  node default-1 launching
    1.0 s  0/2 pods running, 1 nodes, $0.0000/h
    1.2 s  node default-1 ready (c7i.large, us-west-2a, spot, $0.0311/h)
    1.2 s  2/2 pods running, 1 nodes, $0.0311/h
==> deleting
    1.0 s  node default-1 leaving (c7i.large, us-west-2a, spot, $0.0311/h)
    1.0 s  0/2 pods running, 1 nodes, $0.0000/h
    2.0 s  node default-1 gone (c7i.large, us-west-2a, spot, $0.0311/h)
    2.0 s  0/2 pods running, 0 nodes, $0.0000/h
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestTableFitsTheTerminal(t *testing.T) {
	s := &screen{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		s.rows = append(s.rows, row{Name: name, Type: "m7i.48xlarge", Status: ready, Pods: 7, Price: 1.5})
	}
	all := s.lines(20)
	if len(all) != 6 || !strings.Contains(all[1].text, "a     m7i.48xlarge  -     -         1.5000     7  ready") {
		t.Errorf("table of %d lines:\n%+v", len(all), all)
	}
	few := s.lines(4)
	if len(few) != 4 || !strings.Contains(few[3].text, "and 3 more") {
		t.Errorf("a table in 4 lines:\n%+v", few)
	}
	if got := clip("abcdef", 3); got != "abc" {
		t.Errorf("clip gave %q", got)
	}
}

func TestIndenter(t *testing.T) {
	var out bytes.Buffer
	w := (&screen{out: &out}).indented()
	for _, text := range []string{"one\ntw", "o\n"} {
		if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatalf("Write gave %d, %v", n, err)
		}
	}
	if out.String() != "    one\n    two\n" {
		t.Errorf("got %q", out.String())
	}
}
