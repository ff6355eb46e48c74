package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// rows are the rows of a table of fields.
type rows []string

// children adds the fields of an object, and of what is in them, by their names.
func (r *rows) children(path string, s *apiextensionsv1.JSONSchemaProps) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		r.field(path+"."+name, &p, slices.Contains(s.Required, name))
	}
}

// field adds a field and what is in it.
func (r *rows) field(path string, s *apiextensionsv1.JSONSchemaProps, required bool) {
	rules := constraints(s)
	if required && s.Default == nil {
		rules = slices.Insert(rules, 0, "required")
	}
	item := element(s)
	if item != nil && !isConditions(s) {
		for _, rule := range constraints(item) {
			rules = append(rules, "each: "+rule)
		}
	}
	*r = append(*r, fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", path, kind(s), defaultOf(s),
		strings.Join(rules, "; "), flat(s.Description)))
	switch {
	case isConditions(s): // those of every kind in Kubernetes
	case s.Items != nil && s.Items.Schema != nil:
		r.children(path+"[]", s.Items.Schema)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		r.children(path+".*", s.AdditionalProperties.Schema)
	default:
		r.children(path, s)
	}
}

// element is what a list or a map has.
func element(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if s.Items != nil && s.Items.Schema != nil {
		return s.Items.Schema
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Schema
	}
	return nil
}

// isConditions reports whether a list has the conditions that Kubernetes defines for all kinds.
func isConditions(s *apiextensionsv1.JSONSchemaProps) bool {
	item := element(s)
	return item != nil && item.Properties["lastTransitionTime"].Type != "" && item.Properties["reason"].Type != ""
}

// isQuantity tells a quantity of Kubernetes, which is a number or a text such as 10Gi, from other things that are one
// of both.
func isQuantity(s *apiextensionsv1.JSONSchemaProps) bool {
	return s.XIntOrString && strings.Contains(s.Pattern, "KMGTPE")
}

// kind is a field's type in words.
func kind(s *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case isConditions(s):
		return "list of conditions"
	case isQuantity(s):
		return "quantity"
	case s.XIntOrString:
		return "integer or string"
	case s.Type == "array":
		return "list of " + plural(kind(element(s)))
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return "map of " + plural(kind(element(s)))
	case s.Format == "date-time":
		return "time"
	case s.Type == "":
		return "any"
	default:
		return s.Type
	}
}

func plural(word string) string {
	switch {
	case word == "any":
		return "anything"
	case word == "quantity":
		return "quantities"
	case strings.HasPrefix(word, "list of "):
		return "lists of " + strings.TrimPrefix(word, "list of ")
	case strings.HasPrefix(word, "map of "):
		return "maps of " + strings.TrimPrefix(word, "map of ")
	case word == "integer or string":
		return "integers or strings"
	default:
		return word + "s"
	}
}

func defaultOf(s *apiextensionsv1.JSONSchemaProps) string {
	if s.Default == nil {
		return ""
	}
	return code(strings.Trim(string(s.Default.Raw), `"`))
}

// code is a text that is shown as it is.
func code(text string) string { return "`" + strings.ReplaceAll(text, "|", `\|`) + "`" }

// constraints are what the API server checks, in words.
func constraints(s *apiextensionsv1.JSONSchemaProps) []string {
	var out []string
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			values = append(values, code(strings.Trim(string(v.Raw), `"`)))
		}
		out = append(out, "one of "+strings.Join(values, ", "))
	}
	if s.Pattern != "" && !isQuantity(s) {
		out = append(out, "matches "+code(s.Pattern))
	}
	out = append(out, bounds("", number(s.Minimum), number(s.Maximum))...)
	out = append(out, bounds(" characters", whole(s.MinLength), whole(s.MaxLength))...)
	out = append(out, bounds(" items", whole(s.MinItems), whole(s.MaxItems))...)
	out = append(out, bounds(" entries", whole(s.MinProperties), whole(s.MaxProperties))...)
	return append(out, validations(s)...)
}

// bounds says between what and what something may be.
func bounds(unit, least, most string) []string {
	switch {
	case least == "" && most == "":
		return nil
	case most == "" && least == "1" && unit != "":
		return []string{"not empty"}
	case most == "":
		return []string{"at least " + least + unit}
	case least == "":
		return []string{"at most " + most + unit}
	default:
		return []string{least + " to " + most + unit}
	}
}

func number(v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(*v)
}

func whole(v *int64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(*v)
}

// validations are the rules between fields, in the words that the API server refuses with.
func validations(s *apiextensionsv1.JSONSchemaProps) []string {
	var out []string
	for _, v := range s.XValidations {
		text := strings.TrimSuffix(flat(v.Message), ".")
		if text == "" {
			text = code(v.Rule)
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}
