package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const notice = "<!-- Written by make generate from the Go types in api/. Don't edit it. -->\n\n"

// index is the page that lists the others.
func index(definitions []*apiextensionsv1.CustomResourceDefinition) string {
	var b strings.Builder
	b.WriteString(notice + "# Kinds of the API\n\nEvery field, with its type, default and rules. `make generate` " +
		"writes these pages from the Go types in [api/](../../../api).\n\n")
	b.WriteString("| kind | group | versions | what it is |\n|---|---|---|---|\n")
	for _, d := range definitions {
		var versions []string
		about := ""
		for _, v := range d.Spec.Versions {
			versions = append(versions, v.Name)
			if s := schema(&v); s != nil && (v.Storage || about == "") {
				about = sentence(s.Description)
			}
		}
		fmt.Fprintf(&b, "| [%s](%s) | `%s` | %s | %s |\n", d.Spec.Names.Kind, file(d), d.Spec.Group,
			strings.Join(versions, ", "), about)
	}
	return b.String()
}

// page is the page of a kind.
func page(d *apiextensionsv1.CustomResourceDefinition) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s# %s\n\n", notice, d.Spec.Names.Kind)
	scope := "It is in no namespace."
	if d.Spec.Scope == apiextensionsv1.NamespaceScoped {
		scope = "It is in a namespace."
	}
	fmt.Fprintf(&b, "Group `%s`, resource `%s`%s. %s\n", d.Spec.Group, d.Spec.Names.Plural, shortNames(d), scope)
	versions := slices.Clone(d.Spec.Versions)
	slices.SortStableFunc(versions, func(x, y apiextensionsv1.CustomResourceDefinitionVersion) int {
		return rank(x) - rank(y)
	})
	for _, v := range versions {
		b.WriteString(version(&v))
	}
	return b.String()
}

// rank puts the version that is stored first.
func rank(v apiextensionsv1.CustomResourceDefinitionVersion) int {
	if v.Storage {
		return 0
	}
	return 1
}

func shortNames(d *apiextensionsv1.CustomResourceDefinition) string {
	if len(d.Spec.Names.ShortNames) == 0 {
		return ""
	}
	return " (`" + strings.Join(d.Spec.Names.ShortNames, "`, `") + "`)"
}

// version is the part of a page about one version.
func version(v *apiextensionsv1.CustomResourceDefinitionVersion) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n\n", v.Name)
	root := schema(v)
	if root == nil {
		return b.String() + "It has no schema.\n"
	}
	fmt.Fprintf(&b, "%s%s\n", flat(root.Description), state(v))
	if columns := printed(v); columns != "" {
		fmt.Fprintf(&b, "\n`kubectl get` shows %s.\n", columns)
	}
	for _, rule := range validations(root) {
		fmt.Fprintf(&b, "\nRule: %s.\n", rule)
	}
	for _, name := range slices.Sorted(maps.Keys(root.Properties)) {
		if name == "apiVersion" || name == "kind" || name == "metadata" {
			continue
		}
		p := root.Properties[name]
		r := rows{}
		r.children(name, &p)
		fmt.Fprintf(&b, "\n### %s of %s\n\n%s\n", name, v.Name, flat(p.Description))
		for _, rule := range validations(&p) {
			fmt.Fprintf(&b, "\nRule: %s.\n", rule)
		}
		if len(r) > 0 {
			b.WriteString("\n| field | type | default | rules | meaning |\n|---|---|---|---|---|\n" +
				strings.Join(r, ""))
		}
	}
	return b.String()
}

// state says what becomes of objects of the version.
func state(v *apiextensionsv1.CustomResourceDefinitionVersion) string {
	out := ""
	if v.Storage {
		out += " Objects are stored in this version."
	}
	if !v.Served {
		out += " It is not served."
	}
	if v.Deprecated {
		out += " It is deprecated"
		if v.DeprecationWarning != nil {
			out += ": " + flat(*v.DeprecationWarning)
		}
		out = strings.TrimSuffix(out, ".") + "."
	}
	return out
}

// printed are the columns that kubectl shows; those that it only shows with -o wide are in brackets.
func printed(v *apiextensionsv1.CustomResourceDefinitionVersion) string {
	var out []string
	for _, c := range v.AdditionalPrinterColumns {
		if c.Priority > 0 {
			out = append(out, c.Name+" (with `-o wide`)")
			continue
		}
		out = append(out, c.Name)
	}
	return strings.Join(out, ", ")
}

func schema(v *apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	if v.Schema == nil {
		return nil
	}
	return v.Schema.OpenAPIV3Schema
}

// flat is a text in one line, as it can stand in a cell of a table.
func flat(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text)
}

// sentence is the first sentence of a text.
func sentence(text string) string {
	first, _, cut := strings.Cut(flat(text), ". ")
	if cut {
		return first + "."
	}
	return first
}
