// Package source says what is being released: the version by tag, the commit and its time. It asks git and changes
// nothing.
package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Source is one state of the repository.
type Source struct {
	// Root is the folder of the repository.
	Root string
	// Version begins with v: the tag, or the tag, how many commits ago it was and the commit, or these with v0.0.0 if
	// there is no tag. It ends in -dirty if files differ from the commit.
	Version string
	Commit  string
	Dirty   bool
	// Time is the time that every file of the release gets: SOURCE_DATE_EPOCH, or the commit's.
	Time time.Time
}

// Bare is the version without its v: charts and images are named by it, as is the habit for both.
func (s Source) Bare() string { return strings.TrimPrefix(s.Version, "v") }

// TreeState is what kubectl calls it.
func (s Source) TreeState() string {
	if s.Dirty {
		return "dirty"
	}
	return "clean"
}

// versionForm is a semantic version without build metadata: a plus sign is not allowed in the tag of an image.
var versionForm = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

// Read asks git about the repository at root. A version that is given wins over the tag.
func Read(ctx context.Context, root, given string) (Source, error) {
	s := Source{Root: root, Version: given}
	var err error
	if s.Commit, err = git(ctx, root, "rev-parse", "HEAD"); err != nil {
		return Source{}, err
	}
	changed, err := git(ctx, root, "status", "--porcelain")
	if err != nil {
		return Source{}, err
	}
	s.Dirty = changed != ""
	if s.Time, err = sourceTime(ctx, root); err != nil {
		return Source{}, err
	}
	if s.Version == "" {
		if s.Version, err = describe(ctx, root, s.Dirty); err != nil {
			return Source{}, err
		}
	}
	if !versionForm.MatchString(s.Version) {
		return Source{}, fmt.Errorf("the version %q is not of the form v1.2.3 or v1.2.3-rc.1: correct the tag or "+
			"VERSION", s.Version)
	}
	return s, nil
}

func describe(ctx context.Context, root string, dirty bool) (string, error) {
	version, err := git(ctx, root, "describe", "--tags", "--match", "v[0-9]*", "--abbrev=12")
	if err != nil {
		// There is no tag yet, or the clone was made without them.
		count, err := git(ctx, root, "rev-list", "--count", "HEAD")
		if err != nil {
			return "", err
		}
		short, err := git(ctx, root, "rev-parse", "--short=12", "HEAD")
		if err != nil {
			return "", err
		}
		version = "v0.0.0-" + count + "-g" + short
	}
	if dirty {
		version += "-dirty"
	}
	return version, nil
}

func sourceTime(ctx context.Context, root string) (time.Time, error) {
	text, given := os.LookupEnv("SOURCE_DATE_EPOCH")
	if !given || text == "" {
		var err error
		if text, err = git(ctx, root, "log", "-1", "--format=%ct"); err != nil {
			return time.Time{}, err
		}
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, fmt.Errorf(
			"SOURCE_DATE_EPOCH=%q is not a number of seconds since 1970: correct or unset it", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

func git(ctx context.Context, root string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("running git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}
