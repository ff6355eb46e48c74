package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenon-sh/tenon/internal/convert"
)

// convertOptions are the settings of tenon convert, by kubectl's names where it has them.
type convertOptions struct {
	files     []string
	recursive bool
	output    string
	convert.Options
}

func newConvertCommand() *cobra.Command {
	o := &convertOptions{}
	cmd := &cobra.Command{
		Use:   "convert -f FILE|DIR|-",
		Short: "Turn manifests of older generations into v1",
		Long: `Read manifests and print them in the words of v1: Provisioner and AWSNodeTemplate, NodePool,
NodeClaim and EC2NodeClass of v1beta1, and workloads that use names of that time. Comments stay.
Whatever else the files hold is printed as it is.

What means something else in v1 is told on stderr and as a comment. If something can't be said
in v1, nothing is printed, the error names the file, the document, the field and the fix, and
the command fails. No cluster is needed.`,
		Example: `  tenon convert -f provisioner.yaml --cluster-name my-cluster > nodepool.yaml
  kubectl get provisioners,awsnodetemplates -o yaml | tenon convert -f -`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%q: give files and folders with -f", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runConvert(o, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringSliceVarP(&o.files, "filename", "f", nil, "files and folders with manifests, and - for standard input")
	f.BoolVarP(&o.recursive, "recursive", "R", false, "also read the folders in folders")
	f.StringVarP(&o.output, "output", "o", "yaml", "yaml or json")
	f.StringVar(&o.Cluster, "cluster-name", "",
		"name of the cluster, which subnets, security groups and roles that a manifest does not give follow from; "+
			"empty for the variable ${CLUSTER_NAME}, which Tenon knows and Karpenter does not")
	f.StringVar(&o.InstanceProfile, "aws-default-instance-profile", "",
		"instance profile of nodes whose manifest names none; empty for the role KarpenterNodeRole-CLUSTER")
	f.BoolVar(&o.ProvisionerLabel, "provisioner-label", false,
		"keep the label karpenter.sh/provisioner-name on nodes: nodes of Provisioners that Tenon runs then stay; "+
			"Karpenter refuses it")
	return cmd
}

func runConvert(o *convertOptions, in io.Reader, out, notes io.Writer) error {
	if len(o.files) == 0 {
		return errors.New("no manifests: give -f with a file, a folder, or - for standard input")
	}
	if o.output != "yaml" && o.output != "json" {
		return fmt.Errorf("--output: %q is not one of yaml, json", o.output)
	}
	sources, err := readSources(o, in)
	if err != nil {
		return err
	}
	result, errs := convert.Convert(sources, o.Options)
	if len(errs) > 0 {
		return fmt.Errorf("nothing was printed:\n%w", errors.Join(errs...))
	}
	if result.Manifests == 0 {
		return fmt.Errorf("no manifests: %s holds none (nothing in it has an apiVersion and a kind)",
			strings.Join(o.files, ", "))
	}
	var text bytes.Buffer
	if o.output == "json" {
		err = writeJSON(&text, result.Documents)
	} else {
		err = writeYAML(&text, result.Documents)
	}
	if err != nil {
		return err
	}
	for _, note := range result.Notes {
		fmt.Fprintln(notes, "note:", note)
	}
	_, err = out.Write(text.Bytes())
	return err
}

// readSources reads all files that are named, in their order; those of a folder by name.
func readSources(o *convertOptions, in io.Reader) ([]convert.Source, error) {
	var out []convert.Source
	for _, name := range o.files {
		if name == "-" {
			text, err := io.ReadAll(in)
			if err != nil {
				return nil, fmt.Errorf("reading standard input: %w", err)
			}
			out = append(out, convert.Source{Name: "standard input", Text: text})
			continue
		}
		paths, err := manifests(name, o.recursive)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("reading the manifests: %w", err)
			}
			out = append(out, convert.Source{Name: path, Text: text})
		}
	}
	return out, nil
}

// manifests are the files that a name stands for: itself, or those of a folder with the endings that kubectl reads.
func manifests(name string, recursive bool) ([]string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("finding the manifests: %w", err)
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	var out []string
	err = filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != name && !recursive:
			return fs.SkipDir
		case !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(path))):
			out = append(out, path)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("finding the manifests: %w", err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s holds no manifests: no file in it ends in .yaml, .yml or .json (-R looks in its "+
			"folders, too)",
			name)
	}
	return out, nil
}

func writeYAML(out *bytes.Buffer, documents []convert.Document) error {
	for i := range documents {
		text, err := documents[i].YAML()
		if err != nil {
			return err
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	return nil
}

// writeJSON writes one object, or a list of several, as kubectl does.
func writeJSON(out *bytes.Buffer, documents []convert.Document) error {
	items := []json.RawMessage{}
	for i := range documents {
		text, err := documents[i].JSON()
		if err != nil {
			return err
		}
		items = append(items, text)
	}
	var object any = map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
	if len(items) == 1 {
		object = items[0]
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "    ")
	return encoder.Encode(object)
}
