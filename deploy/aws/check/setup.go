// Package check compares the two ways to set up an AWS account for Tenon, the CloudFormation template and the Terraform
// module beside this folder, with each other and with what the rest of the repository says: the policies in
// docs/reference/aws, and the messages that the controller reads. It works both files out as AWS and Terraform would,
// without either, and is a module of its own so that the libraries which read them are no dependencies of the
// controller.
package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
)

// These stand for what AWS says about itself.
const (
	partition = "aws"
	region    = "us-west-2"
	account   = "111122223333"
	urlSuffix = "amazonaws.com"
)

// Setup is what a set-up makes, in words of neither tool.
type Setup struct {
	Roles map[string]Role
	// Profiles are the roles of instance profiles, by the profile's name.
	Profiles map[string]string
	// AccessEntries and Identities have one text each: cluster, principal and type; cluster, namespace, service account
	// and role.
	AccessEntries, Identities []string
	Queues                    map[string]Queue
	// Events are the patterns of the rules, by JSON text, with the targets of each.
	Events             map[string][]string
	ServiceLinkedRoles []string
	Outputs            map[string]string
}

// Role is an IAM role.
type Role struct {
	Trust    any
	Policies map[string]any
	Managed  []string
}

// Queue is an SQS queue.
type Queue struct {
	Retention, Encrypted string
	Policy               any
}

func newSetup() Setup {
	return Setup{Roles: map[string]Role{}, Profiles: map[string]string{}, Queues: map[string]Queue{},
		Events:  map[string][]string{},
		Outputs: map[string]string{}}
}

// sorted puts lists whose order means nothing in order.
func (s Setup) sorted() Setup {
	for _, r := range s.Roles {
		slices.Sort(r.Managed)
	}
	slices.Sort(s.AccessEntries)
	slices.Sort(s.Identities)
	slices.Sort(s.ServiceLinkedRoles)
	return s
}

func roleARN(name string) string {
	return fmt.Sprintf("arn:%s:iam::%s:role/%s", partition, account, name)
}

func queueARN(name string) string {
	return fmt.Sprintf("arn:%s:sqs:%s:%s:%s", partition, region, account, name)
}

func queueURL(name string) string {
	return fmt.Sprintf("https://sqs.%s.%s/%s/%s", region, urlSuffix, account, name)
}

// policy reads a policy document. One text and a list of one text mean the same in it, and the order of a list means
// nothing.
func policy(document any) (any, error) {
	text, ok := document.(string)
	if !ok {
		return canonical(document), nil
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return nil, fmt.Errorf("reading a policy document: %w", err)
	}
	return canonical(v), nil
}

func canonical(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, inner := range v {
			out[k] = canonical(inner)
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, inner := range v {
			out = append(out, canonical(inner))
		}
		if len(out) == 1 {
			return out[0]
		}
		sort.Slice(out, func(i, j int) bool { return encode(out[i]) < encode(out[j]) })
		return out
	default:
		return v
	}
}

// encode is the JSON text of a value that came from JSON or YAML. Keys are in order.
func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%v", err)
	}
	return string(text)
}
