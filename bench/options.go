package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// options are the flags.
type options struct {
	tenon     string
	only      string
	pods      int
	tenonOnly bool
	peerOnly  bool
	skipBase  bool
	baseOnly  bool
	timeout   time.Duration
	idle      time.Duration
	quiet     time.Duration
	profiles  string
	keepLogs  string
	logLevel  string
}

func parse(args []string, messages io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.tenon, "tenon", filepath.Join("..", "bin", "tenon"), "path of the tenon executable")
	f.StringVar(&o.only, "only", "", "run only these scenarios, separated by commas: names as in the lines (up-1000) "+
		"or kinds (up, rss, idle, down, settle, drift)")
	f.IntVar(&o.pods, "pods", 0, "do every kind of scenario with this number of pods, instead of the usual ones with "+
		"1000 and 20000")
	f.BoolVar(&o.tenonOnly, "tenon-only", false, "leave the peer out")
	f.BoolVar(&o.peerOnly, "peer-only", false, "leave Tenon out")
	f.BoolVar(&o.skipBase, "skip-base", false, "leave the run without an autoscaler out")
	f.BoolVar(&o.baseOnly, "base-only", false, "run only the pods, without an autoscaler, on nodes that are there")
	f.DurationVar(&o.timeout, "timeout", 30*time.Minute, "how long a contestant may take for one scenario")
	f.DurationVar(&o.idle, "idle", time.Minute, "how long to look at an idle controller")
	f.DurationVar(&o.quiet, "quiet", time.Minute, "how long nothing may change before a cluster counts as settled")
	f.StringVar(&o.profiles, "profiles", "", "folder that takes profiles of Tenon's processor time and memory")
	f.StringVar(&o.keepLogs, "keep-logs", "", "folder that keeps the controllers' logs")
	f.StringVar(&o.logLevel, "log-level", "info", "log level of the controllers: debug, info or error")
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		f.SetOutput(messages)
		f.PrintDefaults()
		return o, err
	}
	if err != nil {
		return o, fmt.Errorf("%w (see -help)", err)
	}
	return o, o.validate(f.Args())
}

func (o options) validate(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("%q is not a flag; see -help", rest[0])
	case o.pods < 0 || o.pods > 100_000:
		return fmt.Errorf("-pods: %d is out of range; use 1 to 100000", o.pods)
	case o.tenonOnly && o.peerOnly:
		return errors.New("-tenon-only and -peer-only leave nothing; give one of them")
	case o.baseOnly && (o.skipBase || o.tenonOnly || o.peerOnly):
		return errors.New("-base-only goes with none of -skip-base, -tenon-only and -peer-only")
	case o.timeout <= 0:
		return fmt.Errorf("-timeout: %s is too short; use for instance 30m", o.timeout)
	case o.idle < time.Second:
		return fmt.Errorf("-idle: %s is too short; use 1s or more", o.idle)
	case o.quiet < time.Second:
		return fmt.Errorf("-quiet: %s is too short; use 1s or more", o.quiet)
	case o.logLevel != "debug" && o.logLevel != "info" && o.logLevel != "error":
		return fmt.Errorf("-log-level: %q is not one of debug, info, error", o.logLevel)
	}
	var known []string
	for _, s := range sessions(o.pods) {
		for _, kind := range s.kinds {
			known = append(known, kind, s.scenario(kind).Name())
		}
	}
	for _, name := range o.names() {
		if !slices.Contains(known, name) {
			slices.Sort(known)
			return fmt.Errorf("-only: %q is not one of %s", name, strings.Join(slices.Compact(known), ", "))
		}
	}
	return nil
}

// names are the scenarios that were asked for; none for all.
func (o options) names() []string {
	return strings.FieldsFunc(o.only, func(r rune) bool { return r == ',' })
}
