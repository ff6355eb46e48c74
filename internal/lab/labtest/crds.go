package labtest

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

const crdPatience = 15 * time.Second

// InstallCRDs applies every *.yaml file of files as a CustomResourceDefinition
// and returns when the API server serves all of them. Installing the same
// definitions again changes nothing and is quick.
func (l *Lab) InstallCRDs(files fs.FS) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), crdPatience)
	defer cancel()
	if err := l.installCRDs(ctx, files); err != nil {
		l.t.Fatalf("install CRDs: %v", err)
	}
}

func (l *Lab) installCRDs(ctx context.Context, files fs.FS) error {
	c, err := apiextensions.NewForConfig(l.config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	definitions := c.ApiextensionsV1().CustomResourceDefinitions()
	var names []string
	err = fs.WalkDir(files, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(file) != ".yaml" {
			return err
		}
		name, content, err := readCRD(files, file)
		if err != nil {
			return err
		}
		force := true
		_, err = definitions.Patch(ctx, name, types.ApplyPatchType, content,
			metav1.PatchOptions{FieldManager: "labtest", Force: &force})
		if err != nil {
			return fmt.Errorf("apply %s: %w", file, err)
		}
		names = append(names, name)
		return nil
	})
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("no *.yaml file given")
	}
	for _, name := range names {
		err := poll(ctx, func() (bool, error) {
			definition, err := definitions.Get(ctx, name, metav1.GetOptions{})
			return err == nil && established(definition), err
		})
		if err != nil {
			return fmt.Errorf("wait for %s to be served: %w", name, err)
		}
	}
	return nil
}

func readCRD(files fs.FS, file string) (name string, content []byte, err error) {
	content, err = fs.ReadFile(files, file)
	if err != nil {
		return "", nil, err
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(content, &definition); err != nil {
		return "", nil, fmt.Errorf("parse %s: %w", file, err)
	}
	if definition.Kind != "CustomResourceDefinition" {
		return "", nil, fmt.Errorf("%s holds a %q and not a CustomResourceDefinition", file, definition.Kind)
	}
	return definition.Name, content, nil
}
