package ec2

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/ec2/query"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

var templateName = regexp.MustCompile(`^[a-zA-Z0-9().\-/_]{3,128}$`)

func (s *Service) createTemplate(r *request, in *sdk.CreateLaunchTemplateInput) (*sdk.CreateLaunchTemplateOutput,
	*wire.Error) {
	name := aws.ToString(in.LaunchTemplateName)
	if !templateName.MatchString(name) {
		return nil, wire.Errorf("InvalidLaunchTemplateName.MalformedException", "A launch template name must be "+
			"between 3 and 128 characters, and may contain letters, numbers, and the following characters: "+
			"- ( ) . / _.")
	}
	if in.LaunchTemplateData == nil {
		// one that says nothing leaves no trace in the form
		in.LaunchTemplateData = &ec2types.RequestLaunchTemplateData{}
	}
	if err := checkTemplateData(in.LaunchTemplateData); err != nil {
		return nil, err
	}
	if err := dryRun(aws.ToBool(in.DryRun)); err != nil {
		return nil, err
	}
	return once(s, r, aws.ToString(in.ClientToken), func() (*sdk.CreateLaunchTemplateOutput, *wire.Error) {
		tags := tagsOf(in.TagSpecifications, ec2types.ResourceTypeLaunchTemplate)
		t, err := s.world.AddTemplate(name, aws.ToString(in.VersionDescription), in.LaunchTemplateData, tags)
		if err != nil {
			return nil, err
		}
		return &sdk.CreateLaunchTemplateOutput{LaunchTemplate: s.templateView(t)}, nil
	})
}

// checkTemplateData refuses what EC2 refuses when a template is made; whether what it names exists is found out at
// launch.
func checkTemplateData(data *ec2types.RequestLaunchTemplateData) *wire.Error {
	raw, err := base64.StdEncoding.DecodeString(aws.ToString(data.UserData))
	if err != nil {
		return wire.Errorf("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
	}
	if len(raw) > 16384 {
		return wire.Errorf("InvalidUserData.Malformed", "User data is limited to 16384 bytes")
	}
	if data.InstanceType != "" && data.InstanceRequirements != nil {
		return wire.Errorf("InvalidParameterCombination", "You cannot specify both an instance type and instance "+
			"requirements.")
	}
	if len(data.NetworkInterfaces) > 0 && len(data.SecurityGroupIds) > 0 {
		return wire.Errorf("InvalidParameterCombination", "Network interfaces and an instance-level security groups "+
			"may not be specified on the same request")
	}
	for _, m := range data.BlockDeviceMappings {
		if aws.ToString(m.DeviceName) == "" {
			return cloud.CheckDeviceName("")
		}
	}
	return nil
}

func (s *Service) createTemplateVersion(r *request,
	in *sdk.CreateLaunchTemplateVersionInput) (*sdk.CreateLaunchTemplateVersionOutput, *wire.Error) {
	if in.LaunchTemplateData == nil {
		in.LaunchTemplateData = &ec2types.RequestLaunchTemplateData{}
	}
	if err := checkTemplateData(in.LaunchTemplateData); err != nil {
		return nil, err
	}
	id, name := aws.ToString(in.LaunchTemplateId), aws.ToString(in.LaunchTemplateName)
	t, err := s.world.Template(id, name)
	if err != nil {
		return nil, err
	}
	if in.SourceVersion != nil {
		source, err := t.Version(*in.SourceVersion)
		if err != nil {
			return nil, err
		}
		query.Fill(in.LaunchTemplateData, source.Data)
	}
	if err := dryRun(aws.ToBool(in.DryRun)); err != nil {
		return nil, err
	}
	return once(s, r, aws.ToString(in.ClientToken), func() (*sdk.CreateLaunchTemplateVersionOutput, *wire.Error) {
		t, err := s.world.AddTemplateVersion(id, name, aws.ToString(in.VersionDescription), in.LaunchTemplateData)
		if err != nil {
			return nil, err
		}
		return &sdk.CreateLaunchTemplateVersionOutput{LaunchTemplateVersion: s.versionView(t, t.Versions[t.Latest])},
			nil
	})
}

func (s *Service) deleteTemplate(_ *request, in *sdk.DeleteLaunchTemplateInput) (*sdk.DeleteLaunchTemplateOutput,
	*wire.Error) {
	id, name := aws.ToString(in.LaunchTemplateId), aws.ToString(in.LaunchTemplateName)
	if _, err := s.world.Template(id, name); err != nil {
		return nil, err
	}
	if err := dryRun(aws.ToBool(in.DryRun)); err != nil {
		return nil, err
	}
	t, err := s.world.RemoveTemplate(id, name)
	if err != nil {
		return nil, err
	}
	return &sdk.DeleteLaunchTemplateOutput{LaunchTemplate: s.templateView(t)}, nil
}

func (s *Service) deleteTemplateVersions(_ *request,
	in *sdk.DeleteLaunchTemplateVersionsInput) (*sdk.DeleteLaunchTemplateVersionsOutput, *wire.Error) {
	id, name := aws.ToString(in.LaunchTemplateId), aws.ToString(in.LaunchTemplateName)
	t, err := s.world.Template(id, name)
	if err != nil {
		return nil, err
	}
	if err := dryRun(aws.ToBool(in.DryRun)); err != nil {
		return nil, err
	}
	out := &sdk.DeleteLaunchTemplateVersionsOutput{}
	for _, text := range in.Versions {
		n, parsed := strconv.ParseInt(text, 10, 64)
		if parsed != nil {
			return nil, wire.Errorf("InvalidLaunchTemplateId.VersionMalformed", "Launch template version '%s' is not "+
				"valid.", text)
		}
		if err := s.world.RemoveTemplateVersion(id, name, n); err != nil {
			out.UnsuccessfullyDeletedLaunchTemplateVersions = append(out.UnsuccessfullyDeletedLaunchTemplateVersions,
				ec2types.DeleteLaunchTemplateVersionsResponseErrorItem{
					LaunchTemplateId: aws.String(t.ID), LaunchTemplateName: aws.String(t.Name),
					VersionNumber: aws.Int64(n),
					ResponseError: &ec2types.ResponseError{Code: versionErrorCode(err),
						Message: aws.String(err.Message)},
				})
			continue
		}
		out.SuccessfullyDeletedLaunchTemplateVersions = append(out.SuccessfullyDeletedLaunchTemplateVersions,
			ec2types.DeleteLaunchTemplateVersionsResponseSuccessItem{
				LaunchTemplateId: aws.String(t.ID), LaunchTemplateName: aws.String(t.Name), VersionNumber: aws.Int64(n),
			})
	}
	return out, nil
}

// versionErrorCode is the code that the answer to a deletion uses, which is not that of other errors.
func versionErrorCode(e *wire.Error) ec2types.LaunchTemplateErrorCode {
	if e.Code == "InvalidLaunchTemplateId.VersionNotFound" {
		return ec2types.LaunchTemplateErrorCodeLaunchTemplateVersionDoesNotExist
	}
	return ec2types.LaunchTemplateErrorCodeUnexpectedError
}

func (s *Service) describeTemplates(_ *request,
	in *sdk.DescribeLaunchTemplatesInput) (*sdk.DescribeLaunchTemplatesOutput, *wire.Error) {
	var all []ec2types.LaunchTemplate
	for _, t := range s.world.Templates() {
		all = append(all, *s.templateView(t))
	}
	id := func(t *ec2types.LaunchTemplate) string { return aws.ToString(t.LaunchTemplateId) }
	all, err := named(all, in.LaunchTemplateIds, id, func(id string) *wire.Error {
		return wire.Errorf("InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID %s, "+
			"does not exist.", id)
	})
	if err != nil {
		return nil, err
	}
	all, err = named(all, in.LaunchTemplateNames, func(t *ec2types.LaunchTemplate) string {
		return aws.ToString(t.LaunchTemplateName)
	}, func(name string) *wire.Error {
		return wire.Errorf("InvalidLaunchTemplateName.NotFoundException", "At least one of the launch templates "+
			"specified in the request does not exist: %s.", name)
	})
	if err != nil {
		return nil, err
	}
	all, err = filtered(all, in.Filters, func(t *ec2types.LaunchTemplate) []ec2types.Tag {
		return t.Tags
	}, templateAttribute)
	if err != nil {
		return nil, err
	}
	all, next, err := page(all, pages{1, 200, 200}, in.MaxResults, in.NextToken, id)
	return &sdk.DescribeLaunchTemplatesOutput{LaunchTemplates: all, NextToken: next}, err
}

func templateAttribute(t *ec2types.LaunchTemplate, filter string) ([]string, bool) {
	switch filter {
	case "launch-template-name":
		return str(t.LaunchTemplateName), true
	case "create-time":
		return timestamp(t.CreateTime), true
	}
	return nil, false
}

func (s *Service) describeTemplateVersions(_ *request,
	in *sdk.DescribeLaunchTemplateVersionsInput) (*sdk.DescribeLaunchTemplateVersionsOutput, *wire.Error) {
	t, err := s.world.Template(aws.ToString(in.LaunchTemplateId), aws.ToString(in.LaunchTemplateName))
	if err != nil {
		return nil, err
	}
	var all []ec2types.LaunchTemplateVersion
	if len(in.Versions) == 0 {
		for _, v := range t.Versions {
			all = append(all, *s.versionView(t, v))
		}
	}
	for _, text := range slices.Compact(slices.Sorted(slices.Values(in.Versions))) {
		v, err := t.Version(text)
		if err != nil {
			return nil, err
		}
		all = append(all, *s.versionView(t, v))
	}
	sort.Slice(all, func(a, b int) bool { return *all[a].VersionNumber < *all[b].VersionNumber })
	key := func(v *ec2types.LaunchTemplateVersion) string {
		return fmt.Sprintf("%020d", aws.ToInt64(v.VersionNumber))
	}
	all, next, err := page(all, pages{1, 200, 200}, in.MaxResults, in.NextToken, key)
	return &sdk.DescribeLaunchTemplateVersionsOutput{LaunchTemplateVersions: all, NextToken: next}, err
}

func (s *Service) templateView(t cloud.Template) *ec2types.LaunchTemplate {
	return &ec2types.LaunchTemplate{
		LaunchTemplateId: aws.String(t.ID), LaunchTemplateName: aws.String(t.Name), CreateTime: aws.Time(t.Created),
		CreatedBy:            aws.String(s.creator()),
		DefaultVersionNumber: aws.Int64(t.Default), LatestVersionNumber: aws.Int64(t.Latest), Tags: tagList(t.Tags),
	}
}

func (s *Service) versionView(t cloud.Template, v *cloud.TemplateVersion) *ec2types.LaunchTemplateVersion {
	data := &ec2types.ResponseLaunchTemplateData{}
	query.Fill(data, v.Data)
	view := &ec2types.LaunchTemplateVersion{
		LaunchTemplateId: aws.String(t.ID), LaunchTemplateName: aws.String(t.Name), VersionNumber: aws.Int64(v.Number),
		CreateTime: aws.Time(v.Created),
		CreatedBy:  aws.String(s.creator()), DefaultVersion: aws.Bool(v.Number == t.Default), LaunchTemplateData: data,
	}
	if v.Description != "" {
		view.VersionDescription = aws.String(v.Description)
	}
	return view
}

func (s *Service) creator() string { return "arn:aws:iam::" + s.world.Account() + ":root" }
