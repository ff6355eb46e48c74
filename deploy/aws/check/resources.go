package check

import "fmt"

// add adds a resource of the template to the set-up. What it does not know is refused: it would not be compared.
func (t *template) add(s *Setup, r resource) error {
	p := map[string]any{}
	for name, node := range r.Properties {
		v, err := t.value(&node)
		if err != nil {
			return err
		}
		p[name] = v
	}
	str := func(name string) string { v, _ := p[name].(string); return v }
	switch r.Type {
	case "AWS::IAM::Role":
		return s.addRole(p)
	case "AWS::IAM::InstanceProfile":
		s.Profiles[str("InstanceProfileName")] = fmt.Sprint(canonical(p["Roles"]))
	case "AWS::EKS::AccessEntry":
		s.AccessEntries = append(s.AccessEntries, fmt.Sprint(str("ClusterName"), " ", str("PrincipalArn"), " ",
			str("Type")))
	case "AWS::EKS::PodIdentityAssociation":
		s.Identities = append(s.Identities, fmt.Sprint(str("ClusterName"), " ", str("Namespace"), " ",
			str("ServiceAccount"), " ", str("RoleArn")))
	case "AWS::SQS::Queue":
		q := s.Queues[queueURL(str("QueueName"))]
		q.Retention, q.Encrypted = str("MessageRetentionPeriod"), str("SqsManagedSseEnabled")
		s.Queues[queueURL(str("QueueName"))] = q
	case "AWS::SQS::QueuePolicy":
		document, err := policy(p["PolicyDocument"])
		url := fmt.Sprint(canonical(p["Queues"]))
		q := s.Queues[url]
		q.Policy = document
		s.Queues[url] = q
		return err
	case "AWS::Events::Rule":
		targets, _ := p["Targets"].([]any)
		for _, target := range targets {
			fields, _ := target.(map[string]any)
			pattern := encode(canonical(p["EventPattern"]))
			s.Events[pattern] = append(s.Events[pattern], fmt.Sprint(fields["Arn"]))
		}
	case "AWS::IAM::ServiceLinkedRole":
		s.ServiceLinkedRoles = append(s.ServiceLinkedRoles, str("AWSServiceName"))
	default:
		return fmt.Errorf("the type %s is not compared", r.Type)
	}
	return nil
}

func (s *Setup) addRole(p map[string]any) error {
	trust, err := policy(p["AssumeRolePolicyDocument"])
	if err != nil {
		return err
	}
	role := Role{Trust: trust, Policies: map[string]any{}}
	arns, _ := p["ManagedPolicyArns"].([]any)
	for _, arn := range arns {
		role.Managed = append(role.Managed, fmt.Sprint(arn))
	}
	inline, _ := p["Policies"].([]any)
	for _, one := range inline {
		fields, _ := one.(map[string]any)
		if role.Policies[fmt.Sprint(fields["PolicyName"])], err = policy(fields["PolicyDocument"]); err != nil {
			return err
		}
	}
	s.Roles[fmt.Sprint(p["RoleName"])] = role
	return nil
}

// addInstance adds a resource of the module to the set-up. What it does not know is refused: it would not be compared.
func (s *Setup) addInstance(i instance, all []instance) error {
	switch i.kind {
	case "aws_iam_role":
		trust, err := policy(i.fields["assume_role_policy"])
		if err != nil {
			return err
		}
		role := Role{Trust: trust, Policies: map[string]any{}}
		for _, other := range all {
			if other.text("role") != i.text("name") {
				continue
			}
			switch other.kind {
			case "aws_iam_role_policy_attachment":
				role.Managed = append(role.Managed, other.text("policy_arn"))
			case "aws_iam_role_policy":
				if role.Policies[other.text("name")], err = policy(other.fields["policy"]); err != nil {
					return err
				}
			}
		}
		s.Roles[i.text("name")] = role
	case "aws_iam_instance_profile":
		s.Profiles[i.text("name")] = i.text("role")
	case "aws_eks_access_entry":
		s.AccessEntries = append(s.AccessEntries, fmt.Sprint(i.text("cluster_name"), " ", i.text("principal_arn"), " ",
			i.text("type")))
	case "aws_eks_pod_identity_association":
		s.Identities = append(s.Identities,
			fmt.Sprint(i.text("cluster_name"), " ", i.text("namespace"), " ", i.text("service_account"), " ",
				i.text("role_arn")))
	case "aws_sqs_queue":
		q := s.Queues[i.text("url")]
		q.Retention, q.Encrypted = i.text("message_retention_seconds"), i.text("sqs_managed_sse_enabled")
		s.Queues[i.text("url")] = q
	case "aws_sqs_queue_policy":
		document, err := policy(i.fields["policy"])
		q := s.Queues[i.text("queue_url")]
		q.Policy = document
		s.Queues[i.text("queue_url")] = q
		return err
	case "aws_cloudwatch_event_rule":
		pattern, err := policy(i.fields["event_pattern"])
		for _, other := range all {
			if other.kind == "aws_cloudwatch_event_target" && other.text("rule") == i.text("name") {
				s.Events[encode(pattern)] = append(s.Events[encode(pattern)], other.text("arn"))
			}
		}
		return err
	case "aws_iam_service_linked_role":
		s.ServiceLinkedRoles = append(s.ServiceLinkedRoles, i.text("aws_service_name"))
	case "aws_iam_role_policy", "aws_iam_role_policy_attachment", "aws_cloudwatch_event_target":
		// with what they belong to
	default:
		return fmt.Errorf("the type %s is not compared", i.kind)
	}
	return nil
}
