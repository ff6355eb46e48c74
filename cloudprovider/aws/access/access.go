// Package access is the way to AWS: under which addresses its services are asked, and what is counted of the calls.
//
// It is public, is used by whoever puts the provider together, and touches the environment and the files that the SDK
// reads.
package access

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// Load is the SDK's LoadDefaultConfig, but for one thing: a role is taken on (IRSA, or a profile with a role) at the
// endpoint that holds for all services, too. The SDK makes its client of STS before it reads AWS_ENDPOINT_URL and
// endpoint_url, and so asks the public one, which a closed network can't reach. What is said of STS alone
// (AWS_ENDPOINT_URL_STS) comes first, as it does everywhere, and nothing that is configured counts under
// AWS_IGNORE_CONFIGURED_ENDPOINT_URLS.
func Load(ctx context.Context, options ...func(*config.LoadOptions) error) (aws.Config, error) {
	at := &address{}
	loaded, err := config.LoadDefaultConfig(ctx, append(options,
		config.WithWebIdentityRoleCredentialOptions(func(o *stscreds.WebIdentityRoleOptions) {
			if o.Client != nil { // the SDK asks first without a client, only to check what is there
				o.Client = webIdentity{o.Client, at}
			}
		}),
		config.WithAssumeRoleCredentialOptions(func(o *stscreds.AssumeRoleOptions) {
			if o.Client != nil {
				o.Client = role{o.Client, at}
			}
		}))...)
	at.url = loaded.BaseEndpoint
	return loaded, err
}

// address is where all services are that have none of their own; nil if nobody has said so. It is known before the
// first call.
type address struct{ url *string }

// follow lets a call go there, unless STS has an endpoint of its own.
func (a *address) follow(o *sts.Options) {
	if o.BaseEndpoint == nil {
		o.BaseEndpoint = a.url
	}
}

type webIdentity struct {
	next stscreds.AssumeRoleWithWebIdentityAPIClient
	at   *address
}

func (w webIdentity) AssumeRoleWithWebIdentity(ctx context.Context, in *sts.AssumeRoleWithWebIdentityInput,
	options ...func(*sts.Options)) (*sts.AssumeRoleWithWebIdentityOutput, error) {
	return w.next.AssumeRoleWithWebIdentity(ctx, in, append(options, w.at.follow)...)
}

type role struct {
	next stscreds.AssumeRoleAPIClient
	at   *address
}

func (r role) AssumeRole(ctx context.Context, in *sts.AssumeRoleInput,
	options ...func(*sts.Options)) (*sts.AssumeRoleOutput, error) {
	return r.next.AssumeRole(ctx, in, append(options, r.at.follow)...)
}
