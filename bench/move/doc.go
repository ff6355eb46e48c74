// Package move hands a cluster from Karpenter to Tenon and back, with both programs as people run them: a test and
// nothing else. docs/tasks/migrate.md tells people the same way. It builds the peer, as the benchmark does, and touches
// a lab and a temporary folder.
package move
