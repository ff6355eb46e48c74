// Package version says which program this is: what the linker was told and what the go command wrote into the
// executable.
//
// It stands on floor 3: it reads the executable that it is part of, and nothing else. Commands and the operator use it.
package version

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// What the linker was told, set by the linker (go build -ldflags "-X
// github.com/tenon-sh/tenon/internal/version.linkedVersion=…", see release/): an executable that is built elsewhere,
// from an archive of the source without its history, has nothing else to go by.
var linkedVersion, linkedCommit, linkedTreeState, linkedDate string

// Info says which program this is, in the fields that kubectl and the API server use for themselves.
type Info struct {
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
	if v.GitVersion != "" {
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

// Name is the version by tag, or the module's as the go command stamped it.
func Name() string { return Read().GitVersion }

// Commit is the short name of the commit that the executable was built from.
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
		text = fmt.Appendf(nil, "Client Version: %s\n", v.GitVersion)
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
