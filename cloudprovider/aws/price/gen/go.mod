module github.com/tenon-sh/tenon/cloudprovider/aws/price/gen

go 1.26.0

require github.com/LeanerCloud/ec2-instances-info v0.0.0

require github.com/pkg/errors v0.9.1 // indirect

// The repository was renamed: its go.mod has the second name while the module proxy serves it under the first.
replace github.com/LeanerCloud/ec2-instances-info => github.com/cristim/ec2-instances-info v0.0.0-20250528091325-32acf84f42eb
