// Package version says which Tenon this is, and which program it is part of where that is another's: what the linker
// was told and what the go command wrote into the executable.
//
// It stands on floor 3: it reads the executable that it is part of, and nothing else. Commands and the operator use it.
package version

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// What the linker was told, set by the linker (go build -ldflags "-X
// github.com/tenon-sh/tenon/internal/version.linkedVersion=…", see release/): an executable that is built elsewhere,
// from an archive of the source without its history, has nothing else to go by.
var linkedVersion, linkedCommit, linkedTreeState, linkedDate string

// module is what Tenon is called in programs that require it.
const module = "github.com/tenon-sh/tenon"

// Info says which Tenon this is, in the fields that kubectl and the API server use for themselves.
type Info struct {
	// Program is the module of the program that Tenon is part of, and ProgramVersion its version; both are empty if
	// it is Tenon's own.
	Program        string `json:"program,omitempty"`
	ProgramVersion string `json:"programVersion,omitempty"`

	GitVersion   string `json:"gitVersion"`
	GitCommit    string `json:"gitCommit"`
	GitTreeState string `json:"gitTreeState"`
	BuildDate    string `json:"buildDate"`
	GoVersion    string `json:"goVersion"`
	Compiler     string `json:"compiler"`
	Platform     string `json:"platform"`
}

// Read takes what the linker was told, and for the rest what the go command has written into the executable.
func Read() Info {
	v := Info{
		GitVersion: linkedVersion, GitCommit: linkedCommit, GitTreeState: linkedTreeState, BuildDate: linkedDate,
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.fill(info)
	}
	for _, field := range []*string{&v.GitVersion, &v.GitCommit, &v.GitTreeState, &v.BuildDate} {
		if *field == "" {
			*field = "unknown"
		}
	}
	return v
}

// fill takes over what is still empty. A linked version means that the other fields were linked too, or that there is
// nothing to say: the history of the clone that the build happened in may be another's.
func (v *Info) fill(info *debug.BuildInfo) {
	other := info.Main.Path != "" && info.Main.Path != module
	if other {
		v.Program, v.ProgramVersion = info.Main.Path, info.Main.Version
	}
	if v.GitVersion != "" {
		return
	}
	if other { // its history is not Tenon's
		v.GitVersion = required(info.Deps)
		if at := commit.FindStringSubmatch(v.GitVersion); at != nil {
			v.GitCommit = at[1]
		}
		return
	}
	v.GitVersion = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.GitCommit = s.Value
		case "vcs.time":
			v.BuildDate = s.Value
		case "vcs.modified":
			v.GitTreeState = "clean"
			if s.Value == "true" {
				v.GitTreeState = "dirty"
			}
		}
	}
}

// commit is what the version of a module ends with that was required by a commit and not by a tag.
var commit = regexp.MustCompile(`\d{14}-([0-9a-f]{12})$`)

// required is the version of Tenon that a program was built with; empty if it was replaced by a folder.
func required(modules []*debug.Module) string {
	for _, m := range modules {
		if m.Path == module {
			if m.Replace != nil {
				m = m.Replace
			}
			return m.Version
		}
	}
	return ""
}

// String says which program this is in a line.
func (v Info) String() string {
	if v.Program == "" {
		return v.GitVersion
	}
	return fmt.Sprintf("%s (%s, with Tenon %s)", v.ProgramVersion, v.Program, v.GitVersion)
}

// Name is the version of Tenon by tag, or the module's as the go command stamped it.
func Name() string { return Read().GitVersion }

// Commit is the short name of the commit that Tenon was built from.
func Commit() string {
	commit := Read().GitCommit
	return commit[:min(len(commit), 7)]
}

// NewCommand makes the command "version".
func NewCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long:  "Print the version of this executable. -o json and -o yaml print all that is known of its build.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return write(cmd.OutOrStdout(), Read(), output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml; without it, the version alone in one line")
	return cmd
}

func write(out io.Writer, v Info, format string) error {
	document := map[string]Info{"clientVersion": v}
	var text []byte
	var err error
	switch format {
	case "":
		text = fmt.Appendf(nil, "Client Version: %s\n", v)
	case "json":
		text, err = json.MarshalIndent(document, "", "  ")
		text = append(text, '\n')
	case "yaml":
		text, err = yaml.Marshal(document)
	default:
		return fmt.Errorf("--output %q is not known: use json or yaml, or leave it out", format)
	}
	if err != nil {
		return fmt.Errorf("writing the version as %s: %w", format, err)
	}
	_, err = out.Write(text)
	return err
}
