//go:build pin

package main

// The data is read as a file of the module, so nothing imports its Go code; this keeps it in go.mod.
import _ "github.com/LeanerCloud/ec2-instances-info"
